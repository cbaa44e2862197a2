// SPDX-License-Identifier: Apache-2.0
//
// `waste run`: one question, one answer.

#include <nlohmann/json.hpp>

#include "command.h"
#include "conversation.h"
#include "output.h"
#include "token_text.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
The prompt is put to the model as a user's message in its chat format; --raw continues it as plain
text. A prompt of - is read from stdin; one that begins with a dash stands after --.
The answer goes to stdout as it is made. Ctrl-C stops it; what was said stays said.

Examples:
  waste run model.waste "What is the capital of Italy?"
  waste run model.waste "Name a colour." --temperature 1 --seed 7 --max-tokens 20
  waste run model.waste - --system "Answer in French." < question.txt
  waste run model.waste "Once upon a time" --raw --max-tokens 100
JSON: text, thinking, tool, tokens, prompt_tokens, finish_reason (stop, length, cancelled), seed,
      prefill_tok_s, decode_tok_s, prefill_us, decode_us, experts_hit, experts_missed,
      experts_foreseen (of those missed), bytes_read, speculative_bytes (of those read, on a guess),
      read_stalls, read_us, direct_io, budget_bytes, peak_rss_bytes; logprobs with --logprobs)";

struct RunOptions {
  ConversationOptions conversation;
  std::string prompt;
};

int Run(const RunOptions& options, bool json) {
  if (options.conversation.raw && (options.conversation.system || options.conversation.think))
    throw UsageFailure("--raw continues plain text: --system and --think have no place in it");
  const std::string prompt = options.prompt == "-" ? ReadStdin() : options.prompt;
  Conversation conversation(options.conversation);
  const Answer answer = conversation.Ask(prompt, json ? Show::kNothing : Show::kAsItComes);
  if (json) {
    WriteJson(ToJson(answer, conversation.sampling(), conversation.model()));
  } else {
    if (!answer.text.ends_with('\n')) Write("\n");
    WriteSummary(answer, conversation.model());
  }
  return answer.finish_reason == WASTE_FINISH_CANCELLED ? kExitInterrupted : kExitOk;
}

}  // namespace

void AddRun(CLI::App& app, Program& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = AddCommand(app, program, "run", "Ask a model one question", kFooter,
                                 [options, &program] { return Run(*options, program.json); });
  AddConversationOptions(command, options->conversation);
  AddRequired(command, "PROMPT", options->prompt, "What to ask; - reads stdin");
  AddFlag(command, "--raw", options->conversation.raw, "Continue the prompt as plain text");
}

}  // namespace waste_cli
