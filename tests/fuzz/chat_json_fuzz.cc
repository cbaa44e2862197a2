// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as chat.json: refused with a message, or a format that can hold a conversation. The
// same bytes as an answer in K3's markup: every token has a meaning, and the closing closes it.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "chat/chat_format.h"
#include "support/small_tokenizer.h"

namespace {

using waste::Role;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckTable(const waste::Tokenizer& tokenizer, std::string_view text) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return;
  const auto format = waste::MakeTableFormat(tokenizer, json, "chat.json");
  if (!format.ok()) return Require(!format.status().message().empty());
  std::vector<int32_t> ids;
  (*format)->AppendPrelude(ids);
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    const bool known = (*format)->AppendMessage(role, "Hi", false, ids).ok();
    Require(known || role == Role::kSystem);
  }
  (*format)->AppendOpening(false, ids);
  const auto tracker = (*format)->NewTracker(false);
  for (const int32_t id : ids) tracker->Feed(id);
  tracker->AppendClosing(ids);
}

// Each byte is a token; the high ones stand for special tokens.
void CheckAnswer(const waste::Tokenizer& tokenizer, std::string_view bytes) {
  const auto format = waste::MakeK3Format(tokenizer);
  Require(format.ok());
  for (const bool thinking : {false, true}) {
    const auto tracker = (*format)->NewTracker(thinking);
    for (const char byte : bytes) {
      const uint8_t value = static_cast<uint8_t>(byte);
      const auto step = tracker->Feed(value >= 0xF0 ? 300 + value % 8 : value);
      Require(!step.ends_turn || !step.visible);
    }
    std::vector<int32_t> closing, nothing;
    tracker->AppendClosing(closing);
    const auto copy = tracker->Clone();
    for (const int32_t id : closing) Require(!copy->Feed(id).visible);
    copy->AppendClosing(nothing);
    Require(nothing.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizer = waste::SmallTokenizer({}, {{300, "<|open|>"},
                                                           {301, "<|close|>"},
                                                           {302, "<|sep|>"},
                                                           {303, "<|end_of_msg|>"},
                                                           {304, "[EOS]"},
                                                           {305, "<|im_end|>"}});
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckTable(*tokenizer, bytes);
  CheckAnswer(*tokenizer, bytes);
  return 0;
}
