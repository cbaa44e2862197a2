// SPDX-License-Identifier: Apache-2.0
//
// K3's own markup, segment by segment as the release's encoder builds it: a tag's name, and each
// attribute's key, quote, value and quote, are encoded separately.

#include <string>
#include <utility>

#include "chat/chat_format.h"
#include "chat/k3_tracker.h"

namespace waste {
namespace {

constexpr std::string_view kMessage = "message";
constexpr std::string_view kThink = "think";
constexpr std::string_view kResponse = "response";

// `&` and `"` only, in this order, as the release does.
std::string EscapedAttribute(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
  }
  return {};
}

// Appends markup to a list of tokens.
class MarkupWriter {
 public:
  MarkupWriter(const Tokenizer& tokenizer, const K3Tokens& tokens, std::vector<int32_t>& out)
      : tokenizer_(tokenizer), tokens_(tokens), out_(out) {}

  void Open(std::string_view name) {
    out_.push_back(tokens_.open);
    Text(name);
    out_.push_back(tokens_.sep);
  }
  void OpenMessage(std::string_view role) {
    out_.push_back(tokens_.open);
    Text(kMessage);
    Attribute("role", role);
    out_.push_back(tokens_.sep);
  }
  void Close(std::string_view name) {
    out_.push_back(tokens_.close);
    Text(name);
    out_.push_back(tokens_.sep);
  }
  void CloseMessage() {
    Close(kMessage);
    out_.push_back(tokens_.end_of_message);
  }
  void Text(std::string_view text) { tokenizer_.Encode(text, out_); }

 private:
  void Attribute(const std::string& key, std::string_view value) {
    Text(" " + key);
    Text("=\"");
    Text(EscapedAttribute(value));
    Text("\"");
  }

  const Tokenizer& tokenizer_;
  const K3Tokens& tokens_;
  std::vector<int32_t>& out_;
};

class K3Format : public ChatFormat {
 public:
  K3Format(const Tokenizer& tokenizer, const K3Tokens& tokens)
      : tokenizer_(tokenizer), tokens_(tokens), stop_tokens_{tokens.end_of_message} {
    if (tokens.eos >= 0) stop_tokens_.push_back(tokens.eos);
  }

  bool can_think() const override { return true; }
  void AppendPrelude(std::vector<int32_t>&) const override {}

  Status AppendMessage(Role role, std::string_view text, bool thinking,
                       std::vector<int32_t>& out) const override {
    const std::string_view name = RoleName(role);
    if (name.empty())
      return Failure(Code::kUnsupported, "role ", static_cast<int32_t>(role),
                     ": the chat format knows system, user and assistant");
    MarkupWriter writer(tokenizer_, tokens_, out);
    writer.OpenMessage(name);
    if (role == Role::kAssistant) {
      // With thinking on, every answer has the element, also one whose thoughts are not kept.
      if (thinking) {
        writer.Open(kThink);
        writer.Close(kThink);
      }
      writer.Open(kResponse);
      writer.Text(text);
      writer.Close(kResponse);
    } else {
      writer.Text(text);
    }
    writer.CloseMessage();
    return Status();
  }

  void AppendOpening(bool thinking, std::vector<int32_t>& out) const override {
    MarkupWriter writer(tokenizer_, tokens_, out);
    writer.OpenMessage(RoleName(Role::kAssistant));
    writer.Open(FirstElement(thinking));
  }

  const std::vector<int32_t>& stop_tokens() const override { return stop_tokens_; }

  std::unique_ptr<ChannelTracker> NewTracker(bool thinking) const override {
    return std::make_unique<K3Tracker>(
        tokenizer_, tokens_,
        std::vector<std::string>{std::string(kMessage), std::string(FirstElement(thinking))});
  }

 private:
  static std::string_view FirstElement(bool thinking) { return thinking ? kThink : kResponse; }

  const Tokenizer& tokenizer_;
  K3Tokens tokens_;
  std::vector<int32_t> stop_tokens_;
};

}  // namespace

Result<std::unique_ptr<ChatFormat>> MakeK3Format(const Tokenizer& tokenizer) {
  K3Tokens tokens{};
  const std::pair<std::string_view, int32_t*> needed[] = {
      {"<|open|>", &tokens.open},
      {"<|close|>", &tokens.close},
      {"<|sep|>", &tokens.sep},
      {"<|end_of_msg|>", &tokens.end_of_message}};
  for (const auto& [text, id] : needed) {
    *id = tokenizer.FindSpecial(text);
    if (*id < 0)
      return Failure(Code::kUnsupported, "the tokenizer has no special token ", text,
                     ", which K3's chat markup is made of");
  }
  tokens.eos = tokenizer.FindSpecial("[EOS]");
  return std::unique_ptr<ChatFormat>(std::make_unique<K3Format>(tokenizer, tokens));
}

}  // namespace waste
