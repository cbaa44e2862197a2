// SPDX-License-Identifier: Apache-2.0
//
// Tokens of an answer to pieces of text: whole characters, one channel a piece, stop strings cut
// off, markup left out. Keeps count of which tokens each piece consumed, and of how many tokens
// have been handed out completely, which is what a cancelled session keeps. One thread.

#ifndef WASTE_CORE_ENGINE_ANSWER_TEXT_H_
#define WASTE_CORE_ENGINE_ANSWER_TEXT_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "chat/chat_format.h"
#include "engine/stop_matcher.h"
#include "tokenizer/detokenizer.h"

namespace waste {

// Text ready for the caller, and the tokens of the answer it consumed.
struct TextPiece {
  std::string text;
  Channel channel = Channel::kResponse;
  int64_t first_index = 0;
  int64_t token_count = 0;
  int64_t end_index = 0;  // tokens of the answer consumed when the piece was made
};

class AnswerText {
 public:
  // A stop string; before the first Add.
  void AddStop(std::string stop) { stops_.AddStop(std::move(stop)); }

  // The next token: its bytes, whether a user should see them, and its channel. True when a stop
  // string is complete.
  bool Add(std::string_view bytes, bool visible, Channel channel);
  // No more tokens: what was held back becomes ready.
  void Finish();

  bool ready() const { return !pieces_.empty(); }
  // Takes at most `max_bytes` (>= 4) of the first piece, cut at a character.
  TextPiece Take(int64_t max_bytes);

  int64_t token_count() const { return token_count_; }
  // Tokens of which nothing is left to hand out.
  int64_t delivered_tokens() const;

 private:
  bool Emit(std::string_view text);
  void FlushCharacters();
  void Push(std::string text);

  Detokenizer characters_;
  StopMatcher stops_;
  Channel channel_ = Channel::kResponse;
  std::deque<TextPiece> pieces_;
  int64_t token_count_ = 0;
  int64_t reported_tokens_ = 0;   // consumed by pieces made so far
  int64_t delivered_tokens_ = 0;  // consumed by pieces taken completely
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_ANSWER_TEXT_H_
