// SPDX-License-Identifier: Apache-2.0
//
// `waste detokenize`: token ids to text.

#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "options.h"
#include "output.h"
#include "token_text.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Writes the bytes of the tokens and nothing else: a token may be a part of a character. With --json,
bytes that are no UTF-8 become U+FFFD in text and stay what they are in hex.

Example:
  waste detokenize model.waste 12 345 6
JSON: text, hex)";

struct DetokenizeOptions {
  ModelOptions model;
  std::vector<int32_t> tokens;
};

std::vector<int32_t> ReadTokens() {
  std::istringstream words(ReadStdin());
  std::vector<int32_t> tokens;
  for (int32_t token = 0; words >> token;) tokens.push_back(token);
  if (!words.eof())
    throw UsageFailure("standard input: token " + std::to_string(tokens.size()) +
                       " is no number of 32 bits");
  return tokens;
}

std::string HexOf(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return hex;
}

int DetokenizeIds(const DetokenizeOptions& options, bool json) {
  const std::vector<int32_t> tokens = options.tokens.empty() ? ReadTokens() : options.tokens;
  const Model model = OpenModel(options.model);
  const std::string bytes = Detokenize(model, tokens);
  if (json) {
    WriteJson({{"text", bytes}, {"hex", HexOf(bytes)}});
  } else if (StdoutIsTerminal()) {
    WriteText(bytes + "\n");
  } else {
    Write(bytes);
  }
  return kExitOk;
}

}  // namespace

void AddDetokenize(CLI::App& app, Program& program) {
  auto options = std::make_shared<DetokenizeOptions>();
  CLI::App& command =
      AddCommand(app, program, "detokenize", "Turn token ids into text", kFooter,
                 [options, &program] { return DetokenizeIds(*options, program.json); });
  AddModelOptions(command, options->model);
  AddIntegers(command, "IDS", options->tokens, "Token ids (default: from stdin)");
}

}  // namespace waste_cli
