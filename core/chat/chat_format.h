// SPDX-License-Identifier: Apache-2.0
//
// Messages to tokens and tokens to channels. Markup and content are always encoded separately:
// special tokens typed by a user stay text. Two formats exist: K3's element markup, segment by
// segment, and a table of prefixes and suffixes read from chat.json. Immutable; any thread (the
// ChannelTracker belongs to one generation).

#ifndef WASTE_CORE_CHAT_CHAT_FORMAT_H_
#define WASTE_CORE_CHAT_CHAT_FORMAT_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace waste {

enum class Role : int32_t { kSystem = 0, kUser = 1, kAssistant = 2 };
enum class Channel : int32_t { kResponse = 0, kThinking = 1, kTool = 2 };

// Follows the tokens of an answer and says which channel each belongs to and whether it is text a
// user should see. `Feed` never fails: whatever the model writes has a meaning.
class ChannelTracker {
 public:
  virtual ~ChannelTracker() = default;
  struct Step {
    Channel channel;
    bool visible;  // false: markup (a special token, or an element's name and attributes)
    bool ends_turn;
  };
  virtual Step Feed(int32_t token) = 0;
  virtual std::unique_ptr<ChannelTracker> Clone() const = 0;
  // Appends the markup that closes the assistant's turn from where it stands (all elements open
  // now, and the message); nothing if the markup itself has closed it. A turn that only [EOS] or
  // another stop token ended is not closed yet.
  virtual void AppendClosing(std::vector<int32_t>& out) const = 0;
};

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;

  virtual bool can_think() const = 0;
  // Tokens at the very start of a conversation (usually none).
  virtual void AppendPrelude(std::vector<int32_t>& out) const = 0;
  // One whole message. `thinking` says whether the session thinks (an assistant's message then
  // carries an empty think element). Errors: kUnsupported for a role the format does not have.
  virtual Status AppendMessage(Role role, std::string_view text, bool thinking,
                               std::vector<int32_t>& out) const = 0;
  // Hands the floor to the model.
  virtual void AppendOpening(bool thinking, std::vector<int32_t>& out) const = 0;
  // Tokens that end the answer.
  virtual const std::vector<int32_t>& stop_tokens() const = 0;
  virtual std::unique_ptr<ChannelTracker> NewTracker(bool thinking) const = 0;
};

// K3's own markup. `tokenizer` must outlive the format. Errors: kUnsupported if one of its special
// tokens (<|open|>, <|close|>, <|sep|>, <|end_of_msg|>) is missing.
Result<std::unique_ptr<ChatFormat>> MakeK3Format(const Tokenizer& tokenizer);

// The table of chat.json: `user`, `assistant` (each [prefix, suffix]), `open`, and optionally
// `system`, `prelude`, `stop`. Stop tokens are those of `stop`, the special token that the
// assistant's suffix starts with, [EOS] and <|end_of_msg|>. `tokenizer` must outlive the format.
// `path` is for messages. Errors: kFormat naming the key.
Result<std::unique_ptr<ChatFormat>> MakeTableFormat(const Tokenizer& tokenizer,
                                                    const nlohmann::ordered_json& chat,
                                                    const std::string& path);

}  // namespace waste

#endif  // WASTE_CORE_CHAT_CHAT_FORMAT_H_
