// SPDX-License-Identifier: Apache-2.0

#include "chat/k3_tracker.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace waste {
namespace {

// A tag may carry attributes after its name.
std::string NameOf(const std::string& tag) { return tag.substr(0, tag.find(' ')); }

}  // namespace

K3Tracker::K3Tracker(const Tokenizer& tokenizer, const K3Tokens& tokens,
                     std::vector<std::string> elements)
    : tokenizer_(&tokenizer), tokens_(tokens), elements_(std::move(elements)) {}

ChannelTracker::Step K3Tracker::Feed(int32_t token) {
  if (token == tokens_.end_of_message) {
    elements_.clear();
    place_ = Place::kAfterTurn;
  } else if (token == tokens_.open || token == tokens_.close) {
    place_ = token == tokens_.open ? Place::kOpenTag : Place::kCloseTag;
    tag_.clear();
  } else if (token == tokens_.sep) {
    FinishTag();
  } else if (!tokenizer_->IsSpecial(token)) {
    if (place_ == Place::kAfterTurn) place_ = Place::kContent;
    if (place_ == Place::kContent) return {CurrentChannel(), true, false};
    tag_.append(tokenizer_->Bytes(token));
  }
  return {CurrentChannel(), false, token == tokens_.end_of_message || token == tokens_.eos};
}

void K3Tracker::FinishTag() {
  if (place_ == Place::kOpenTag) elements_.push_back(NameOf(tag_));
  if (place_ == Place::kCloseTag) CloseElement(NameOf(tag_));
  if (place_ != Place::kAfterTurn) place_ = Place::kContent;
  tag_.clear();
}

void K3Tracker::CloseElement(const std::string& name) {
  const auto found = std::find(elements_.rbegin(), elements_.rend(), name);
  if (found != elements_.rend()) elements_.erase(found.base() - 1, elements_.end());
}

// The innermost element that has a channel decides, so that an unknown one inside `think` is still
// thinking.
Channel K3Tracker::CurrentChannel() const {
  for (auto element = elements_.rbegin(); element != elements_.rend(); ++element) {
    if (*element == "think") return Channel::kThinking;
    if (*element == "response" || *element == "message") return Channel::kResponse;
    if (*element == "tools" || *element == "call" || *element == "argument" || *element == "json")
      return Channel::kTool;
  }
  return Channel::kResponse;
}

std::unique_ptr<ChannelTracker> K3Tracker::Clone() const {
  return std::make_unique<K3Tracker>(*this);
}

void K3Tracker::AppendClosing(std::vector<int32_t>& out) const {
  if (place_ == Place::kAfterTurn) return;
  K3Tracker rest = *this;
  if (place_ != Place::kContent) {
    // A close that broke off is completed if it began to name the innermost element; any other tag
    // ends as it stands.
    if (place_ == Place::kCloseTag && !elements_.empty() && elements_.back().starts_with(tag_)) {
      tokenizer_->Encode(std::string_view(elements_.back()).substr(tag_.size()), out);
      rest.tag_ = elements_.back();
    }
    out.push_back(tokens_.sep);
    rest.FinishTag();
  }
  for (; !rest.elements_.empty(); rest.elements_.pop_back()) {
    out.push_back(tokens_.close);
    tokenizer_->Encode(rest.elements_.back(), out);
    out.push_back(tokens_.sep);
  }
  out.push_back(tokens_.end_of_message);
}

}  // namespace waste
