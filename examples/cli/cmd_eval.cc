// SPDX-License-Identifier: Apache-2.0
//
// `waste eval`: how well a model predicts a text, or what it would say next.

#include <nlohmann/json.hpp>

#include "command.h"
#include "evaluate.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "token_text.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
--text tells the perplexity of a file: exp of nll, the mean negative log-likelihood (natural
logarithm) of its tokens, the first one excepted, which has nothing before it. A text longer than
the context is read in windows: each after the first begins with the last half of the one before,
which is context and not counted again. Give --context to compare models alike.
--top tells the likeliest next tokens after a prompt, which is plain text.

Examples:
  waste eval model.waste --text book.txt --context 2048
  waste eval model.waste "The capital of Italy is" --top 5
JSON: tokens (those counted), nll, perplexity, context, seconds; with --top: prompt_tokens, top
      (a list of id, text, probability, logprob))";

struct EvalOptions {
  ModelOptions model;
  std::string text_path;
  std::string prompt;
  int32_t top = 0;
  bool markup = false;
};

int Perplexity(const EvalOptions& options, bool json) {
  const std::string text = ReadFile(options.text_path);
  const Model model = OpenModel(options.model);
  const Likelihood result = EvaluateText(model, Tokenize(model, text, options.markup));
  PassNotesOn(model.get());
  if (json) {
    WriteJson({{"tokens", result.tokens},
               {"nll", result.mean_nll},
               {"perplexity", result.perplexity},
               {"context", result.context},
               {"seconds", result.seconds}});
  } else {
    char line[128];
    std::snprintf(line, sizeof line, "perplexity %.6g  nll %.6g  tokens %lld\n", result.perplexity,
                  result.mean_nll, static_cast<long long>(result.tokens));
    Write(line);
  }
  return kExitOk;
}

int NextTokens(const EvalOptions& options, bool json) {
  const std::string prompt = options.prompt == "-" ? ReadStdin() : options.prompt;
  const Model model = OpenModel(options.model);
  const std::vector<int32_t> tokens = Tokenize(model, prompt, options.markup);
  auto rows = nlohmann::ordered_json::array();
  for (const Candidate& next : LikeliestNext(model, tokens, options.top)) {
    if (json) {
      rows.push_back({{"id", next.token},
                      {"text", Detokenize(model, {&next.token, 1})},
                      {"probability", std::exp(next.logprob)},
                      {"logprob", next.logprob}});
      continue;
    }
    char line[64];
    std::snprintf(line, sizeof line, "%8d  %8.4f %%  %9.4f  ", next.token,
                  100 * std::exp(next.logprob), next.logprob);
    WriteText(line + QuotedTokenText(model, next.token) + "\n");
  }
  if (json) WriteJson({{"prompt_tokens", tokens.size()}, {"top", std::move(rows)}});
  return kExitOk;
}

int Eval(const EvalOptions& options, bool json) {
  const bool has_text = !options.text_path.empty();
  if (has_text == (options.top > 0))
    throw UsageFailure("eval takes either --text FILE or a prompt with --top N");
  if (has_text != options.prompt.empty())
    throw UsageFailure(has_text ? "--text takes no prompt" : "--top needs a prompt");
  return has_text ? Perplexity(options, json) : NextTokens(options, json);
}

}  // namespace

void AddEval(CLI::App& app, Program& program) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App& command =
      AddCommand(app, program, "eval", "Measure how well a model predicts text", kFooter,
                 [options, &program] { return Eval(*options, program.json); });
  AddModelOptions(command, options->model);
  AddText(command, "PROMPT", options->prompt, "Text to continue, for --top; - reads stdin");
  AddText(command, "--text", options->text_path, "Tell the perplexity of a file; - reads stdin");
  AddInteger(command, "--top", options->top, "Tell the N likeliest next tokens", 1);
  AddFlag(command, "--markup", options->markup, "Special tokens in the text mean themselves");
}

}  // namespace waste_cli
