// SPDX-License-Identifier: Apache-2.0

#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "os/system.h"

namespace waste {
namespace {

Status NoChatFormat() {
  return Failure(Code::kUnsupported,
                 "this model has no chat format; generate with raw text instead");
}

}  // namespace

Result<std::shared_ptr<Session>> Session::Create(std::shared_ptr<Model> model,
                                                 const SessionOptions& options) {
  const int64_t most = model->info().context;
  if (options.context < 0 || options.context > most)
    return Failure(Code::kArgument, "a session's context is ", options.context,
                   "; the model was opened for at most ", most);
  SessionOptions granted = options;
  if (granted.context == 0) granted.context = most;
  const int64_t bytes = model->TimelineBytes(granted.context);
  WASTE_TRY(model->ChargeSession(bytes));
  auto timeline = model->NewTimeline(granted.context);
  if (!timeline.ok()) {
    model->ReleaseSession(bytes);
    return std::move(timeline).status();
  }
  return std::shared_ptr<Session>(
      new Session(std::move(model), granted, bytes, *std::move(timeline)));
}

Session::Session(std::shared_ptr<Model> model, const SessionOptions& options, int64_t state_bytes,
                 std::unique_ptr<Timeline> timeline)
    : model_(std::move(model)),
      context_(options.context),
      thinking_(options.thinking && model_->chat() != nullptr && model_->chat()->can_think()),
      state_bytes_(state_bytes),
      timeline_(std::move(timeline)) {
  tokens_.reserve(static_cast<size_t>(context_));
}

Session::~Session() {
  timeline_.reset();  // its memory is back before it is counted as free
  model_->ReleaseSession(state_bytes_);
}

Result<Session::Claim> Session::TryClaim() {
  if (busy_.exchange(true, std::memory_order_acquire))
    return Failure(Code::kBusy, "another call on this session is running; wait for it, or cancel");
  return Claim(&busy_);
}

Session::Claim Session::WaitClaim() {
  while (busy_.exchange(true, std::memory_order_acquire))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return Claim(&busy_);
}

// Refused before it claims anything, or the living generation's own next call would meet the claim.
// Between the two questions another thread may have begun one.
Result<Session::Claim> Session::TryClaimIdle() {
  WASTE_TRY(CheckIdle());
  WASTE_ASSIGN(Claim claim, TryClaim());
  WASTE_TRY(CheckIdle());
  return claim;
}

Status Session::CheckIdle() const {
  if (generating_)
    return Failure(Code::kBusy, "a generation of this session lives; free or finish it first");
  return Status();
}

Status Session::CheckFits(size_t more, int64_t reserved) const {
  const int64_t held = static_cast<int64_t>(tokens_.size());
  const int64_t wanted = held + static_cast<int64_t>(more) + reserved;
  if (wanted <= context_) return Status();
  return Failure(Code::kContextFull, more, " tokens more do not fit: the session holds ", held,
                 " of ", context_, "; shorten the text, or open with a larger context");
}

PreparedPrompt Session::Bridge() const {
  PreparedPrompt prompt;
  if (tokens_.empty()) {
    model_->chat()->AppendPrelude(prompt.tokens);
  } else if (turn_open()) {
    TrackOpenTurn()->AppendClosing(prompt.tokens);
  }
  prompt.bridge_count = static_cast<int64_t>(prompt.tokens.size());
  return prompt;
}

Result<PreparedPrompt> Session::PrepareMessage(Role role, std::string_view text) const {
  if (model_->chat() == nullptr) return NoChatFormat();
  PreparedPrompt prompt = Bridge();
  WASTE_TRY(model_->chat()->AppendMessage(role, text, thinking_, prompt.tokens));
  WASTE_TRY(CheckFits(prompt.tokens.size(), 0));
  return prompt;
}

Result<PreparedPrompt> Session::PreparePrompt(const std::string_view* prompt, bool raw) const {
  PreparedPrompt prepared;
  if (prompt == nullptr && tokens_.empty())
    return Failure(Code::kArgument, "there is no prompt, and the session is empty");
  if (raw) {
    if (prompt != nullptr) model_->tokenizer().Encode(*prompt, prepared.tokens);
    if (tokens_.empty() && prepared.tokens.empty())
      return Failure(Code::kArgument, "the prompt is empty, and so is the session");
  } else {
    const ChatFormat* chat = model_->chat();
    if (chat == nullptr) return NoChatFormat();
    const bool goes_on = prompt == nullptr && turn_open();
    if (!goes_on) {
      prepared = Bridge();
      if (prompt != nullptr)
        WASTE_TRY(chat->AppendMessage(Role::kUser, *prompt, thinking_, prepared.tokens));
      chat->AppendOpening(thinking_, prepared.tokens);
      prepared.begins_turn = true;
    }
  }
  WASTE_TRY(CheckFits(prepared.tokens.size(), 1));  // room for one token of an answer
  return prepared;
}

void Session::Commit(const PreparedPrompt& prompt) {
  const int64_t held = static_cast<int64_t>(tokens_.size());
  if (turn_open() && (prompt.bridge_count > 0 || prompt.begins_turn))
    turns_.back().end = held + prompt.bridge_count;
  Append(prompt.tokens);
  if (prompt.begins_turn) turns_.push_back({static_cast<int64_t>(tokens_.size()), -1});
}

void Session::Append(std::span<const int32_t> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  TokensChanged();
}

void Session::Truncate(int64_t count) {
  if (count >= static_cast<int64_t>(tokens_.size())) return;
  tokens_.resize(static_cast<size_t>(count));
  while (!turns_.empty() && turns_.back().begin > count) turns_.pop_back();
  if (!turns_.empty() && turns_.back().end > count) turns_.back().end = -1;
  if (timeline_->position() > count) timeline_->RewindTo(count);
  TokensChanged();
}

void Session::TokensChanged() {
  token_count_.store(static_cast<int64_t>(tokens_.size()), std::memory_order_relaxed);
}

std::unique_ptr<ChannelTracker> Session::TrackOpenTurn() const {
  if (!turn_open()) return nullptr;
  auto tracker = model_->chat()->NewTracker(thinking_);
  for (size_t i = static_cast<size_t>(turns_.back().begin); i < tokens_.size(); ++i)
    tracker->Feed(tokens_[i]);
  return tracker;
}

Status Session::Run(std::span<float> logits, Phase phase, const std::function<bool()>& stop,
                    WorkCounters* also) {
  const int64_t vocab = model_->info().vocab;
  const int64_t total = static_cast<int64_t>(tokens_.size());
  const int64_t logit_rows = static_cast<int64_t>(logits.size()) / vocab;
  if (timeline_->position() > total - logit_rows) timeline_->RewindTo(total - logit_rows);

  // What is computed how is decided once, so that it does not depend on where steps are cut.
  const bool is_prompt = total - timeline_->position() > Backend::kMaxWritten;
  while (timeline_->position() < total) {
    const int64_t begin = timeline_->position(), most = model_->StepRows(*timeline_);
    const int64_t end = std::min(total, (begin / most + 1) * most);
    // Of this step's rows, those at or behind the first one whose logits are wanted.
    const int64_t wanted = std::clamp(end - (total - logit_rows), int64_t{0}, end - begin);
    const auto out = logits.subspan(
        static_cast<size_t>((logit_rows - (total - end) - wanted) * vocab * (wanted > 0)),
        static_cast<size_t>(wanted * vocab));
    ExpertCounters used;
    const int64_t started_us = MonotonicMicros();
    const Status status = model_->Step(
        *timeline_,
        std::span(tokens_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
        out, is_prompt, stop, used);
    const int64_t rows = status.ok() ? end - begin : 0;
    const int64_t micros = MonotonicMicros() - started_us;
    for (WorkCounters* work : {&model_->work(), &work_, also})
      if (work != nullptr) work->AddRun(phase, rows, micros, used);
    WASTE_TRY(status);
  }
  return Status();
}

Result<std::shared_ptr<Session>> Session::Fork() {
  WASTE_ASSIGN(auto copy, Create(model_, {context_, thinking_}));
  copy->timeline_->CopyFrom(*timeline_);
  copy->tokens_.assign(tokens_.begin(), tokens_.end());
  copy->turns_ = turns_;
  copy->TokensChanged();
  return copy;
}

}  // namespace waste
