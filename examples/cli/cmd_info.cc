// SPDX-License-Identifier: Apache-2.0
//
// `waste info`: what a model is and how this machine runs it.

#include <array>
#include <nlohmann/json.hpp>

#include "command.h"
#include "drives.h"
#include "options.h"
#include "output.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Example:
  waste info model.waste
JSON: name, vocab_size, layer_count, hidden_size, expert_count, experts_per_token, context,
      expert_bytes, container_bytes, token_trunk_bytes, token_flops, budget_bytes, cache_slots,
      threads, isa, direct_io, thinking, eos_token, has_chat, folders (those that its experts are
      read from))";

std::string NameOf(const Model& model) {
  std::array<char, 256> name = {};
  Try([&](waste_error* error) {
    return waste_model_name(model.get(), name.data(), std::ssize(name), error);
  });
  return name.data();
}

nlohmann::ordered_json ToJson(const Model& model, const waste_info& info, const std::string& path) {
  return {{"name", NameOf(model)},
          {"vocab_size", info.vocab_size},
          {"layer_count", info.layer_count},
          {"hidden_size", info.hidden_size},
          {"expert_count", info.expert_count},
          {"experts_per_token", info.experts_per_token},
          {"context", info.context},
          {"expert_bytes", info.expert_bytes},
          {"container_bytes", info.container_bytes},
          {"token_trunk_bytes", info.token_trunk_bytes},
          {"token_flops", info.token_flops},
          {"budget_bytes", info.budget_bytes},
          {"cache_slots", info.cache_slots},
          {"threads", info.threads},
          {"isa", IsaName(info.isa)},
          {"direct_io", info.direct_io != 0},
          {"thinking", info.thinking != 0},
          {"eos_token", info.eos_token},
          {"has_chat", info.has_chat != 0},
          {"folders", BankFolders(path)}};
}

void WriteTable(const nlohmann::ordered_json& info) {
  for (const auto& [key, value] : info.items()) {
    std::string line = key;
    line.resize(20, ' ');
    line += value.is_string() ? value.get<std::string>() : value.dump();
    if (key.ends_with("_bytes")) line += " (" + SizeText(value.get<int64_t>()) + ")";
    Write(line + "\n");
  }
}

int Info(const ModelOptions& options, bool json) {
  const Model model = OpenModel(options);
  const nlohmann::ordered_json info = ToJson(model, InfoOf(model), options.path);
  if (json) {
    WriteJson(info);
  } else {
    WriteTable(info);
  }
  return 0;
}

}  // namespace

void AddInfo(CLI::App& app, Program& program) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App& command =
      AddCommand(app, program, "info", "Tell what a model is and how it runs here", kFooter,
                 [options, &program] { return Info(*options, program.json); });
  AddModelOptions(command, *options);
}

}  // namespace waste_cli
