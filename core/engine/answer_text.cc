// SPDX-License-Identifier: Apache-2.0

#include "engine/answer_text.h"

#include <utility>

#include "base/utf8.h"

namespace waste {

bool AnswerText::Add(std::string_view bytes, bool visible, Channel channel) {
  if (visible && channel != channel_) {
    FlushCharacters();  // an unfinished character does not go on in another channel
    channel_ = channel;
  }
  ++token_count_;
  if (!visible) return false;
  std::string text;
  characters_.Add(bytes, text);
  return Emit(text);
}

void AnswerText::Finish() { FlushCharacters(); }

// Stop strings are looked for in the response only: what a model thinks does not end its answer.
bool AnswerText::Emit(std::string_view text) {
  std::string released;
  bool stopped = false;
  if (channel_ == Channel::kResponse) {
    stopped = stops_.Add(text, released);
  } else {
    released = text;
  }
  Push(std::move(released));
  return stopped;
}

void AnswerText::FlushCharacters() {
  std::string text;
  characters_.Finish(text);
  if (Emit(text)) return;
  std::string held;
  stops_.Finish(held);
  Push(std::move(held));
}

void AnswerText::Push(std::string text) {
  if (text.empty()) return;
  TextPiece piece{std::move(text), channel_, reported_tokens_, token_count_ - reported_tokens_,
                  token_count_};
  reported_tokens_ = token_count_;
  pieces_.push_back(std::move(piece));
}

TextPiece AnswerText::Take(int64_t max_bytes) {
  TextPiece& first = pieces_.front();
  const std::string_view part = CutUtf8(first.text, max_bytes);
  if (part.size() == first.text.size()) {
    TextPiece whole = std::move(first);
    pieces_.pop_front();
    delivered_tokens_ = whole.end_index;
    return whole;
  }
  TextPiece head{std::string(part), first.channel, first.first_index, first.token_count,
                 first.end_index};
  first.text.erase(0, part.size());
  first.first_index = first.end_index;  // the head has reported the tokens
  first.token_count = 0;
  return head;
}

// While nothing is held or waiting, invisible tokens count as handed out too.
int64_t AnswerText::delivered_tokens() const {
  const bool idle = pieces_.empty() && !characters_.holding() && !stops_.holding();
  return idle ? token_count_ : delivered_tokens_;
}

}  // namespace waste
