// SPDX-License-Identifier: Apache-2.0
//
// `waste tokenize`: text to token ids.

#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "options.h"
#include "output.h"
#include "token_text.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Special tokens such as <|open|> are plain text, as they are when a user types them; with --markup
they are themselves. Stdin is taken byte by byte, its last newline included.

Examples:
  waste tokenize model.waste "Hello, world"
  waste tokenize model.waste < book.txt
  waste tokenize model.waste "Hello" | xargs waste detokenize model.waste
JSON: tokens)";

struct TokenizeOptions {
  ModelOptions model;
  std::optional<std::string> text;
  bool markup = false;
};

int TokenizeText(const TokenizeOptions& options, bool json) {
  const std::string text = options.text ? *options.text : ReadStdin();
  const Model model = OpenModel(options.model);
  const std::vector<int32_t> tokens = Tokenize(model, text, options.markup);
  if (json) {
    WriteJson({{"tokens", tokens}});
    return kExitOk;
  }
  std::string line;
  for (const int32_t token : tokens) {
    if (!line.empty()) line += ' ';
    line += std::to_string(token);
  }
  Write(line + "\n");
  return kExitOk;
}

}  // namespace

void AddTokenize(CLI::App& app, Program& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App& command =
      AddCommand(app, program, "tokenize", "Turn text into token ids", kFooter,
                 [options, &program] { return TokenizeText(*options, program.json); });
  AddModelOptions(command, options->model);
  AddText(command, "TEXT", options->text, "The text (default: stdin)");
  AddFlag(command, "--markup", options->markup, "Special tokens in the text mean themselves");
}

}  // namespace waste_cli
