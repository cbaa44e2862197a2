// SPDX-License-Identifier: Apache-2.0
//
// Follows an answer in K3's element markup by its token ids: a stack of the elements that are open.
// Malformed markup has a meaning too: a tag that breaks off is forgotten when another one starts, a
// close that matches nothing does nothing, one that matches an outer element closes the inner ones.
// One tracker belongs to one generation and is not synchronised; `tokenizer` must outlive it.

#ifndef WASTE_CORE_CHAT_K3_TRACKER_H_
#define WASTE_CORE_CHAT_K3_TRACKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace waste {

// The special tokens of the markup, by their ids.
struct K3Tokens {
  int32_t open;
  int32_t close;
  int32_t sep;
  int32_t end_of_message;
  int32_t eos;  // -1 if the model has none
};

class K3Tracker : public ChannelTracker {
 public:
  // Starts inside the elements that the opening of the assistant's turn has opened.
  K3Tracker(const Tokenizer& tokenizer, const K3Tokens& tokens, std::vector<std::string> elements);

  Step Feed(int32_t token) override;
  std::unique_ptr<ChannelTracker> Clone() const override;
  void AppendClosing(std::vector<int32_t>& out) const override;

 private:
  enum class Place { kContent, kOpenTag, kCloseTag, kAfterTurn };

  void FinishTag();
  void CloseElement(const std::string& name);
  Channel CurrentChannel() const;

  const Tokenizer* tokenizer_;
  K3Tokens tokens_;
  Place place_ = Place::kContent;
  std::vector<std::string> elements_;  // the names of the open ones, the innermost last
  std::string tag_;                    // what a tag has said so far
};

}  // namespace waste

#endif  // WASTE_CORE_CHAT_K3_TRACKER_H_
