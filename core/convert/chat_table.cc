// SPDX-License-Identifier: Apache-2.0

#include "convert/chat_table.h"

#include <algorithm>
#include <initializer_list>

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

bool HasAll(const Tokenizer& tokenizer, std::initializer_list<const char*> specials) {
  return std::all_of(specials.begin(), specials.end(),
                     [&](const char* text) { return tokenizer.FindSpecial(text) >= 0; });
}

Json Pair(const std::string& prefix, const std::string& suffix) {
  return Json::array({prefix, suffix});
}

Json K3Table() {
  const auto open = [](const std::string& role) {
    return "<|open|>message role=\"" + role + "\"<|sep|>";
  };
  const std::string end = "<|close|>message<|sep|><|end_of_msg|>";
  const std::string response = "<|open|>response<|sep|>";
  Json table;
  table["system"] = Pair(open("system"), end);
  table["user"] = Pair(open("user"), end);
  table["assistant"] = Pair(open("assistant") + response, "<|close|>response<|sep|>" + end);
  table["open"] = open("assistant") + response;
  return table;
}

Json KimiLinearTable() {
  const auto open = [](const std::string& role) {
    return "<|im_" + role + "|>" + role + "<|im_middle|>";
  };
  Json table;
  for (const char* role : {"system", "user", "assistant"})
    table[role] = Pair(open(role), "<|im_end|>");
  table["open"] = open("assistant");
  return table;
}

}  // namespace

std::optional<Json> MakeChatTable(const std::string& arch, const Tokenizer& tokenizer) {
  if (arch == "kimi-k3" &&
      HasAll(tokenizer, {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"})) {
    return K3Table();
  }
  if (arch == "kimi-linear" &&
      HasAll(tokenizer,
             {"<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"})) {
    return KimiLinearTable();
  }
  return std::nullopt;
}

}  // namespace waste
