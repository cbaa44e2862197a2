// SPDX-License-Identifier: Apache-2.0

#include "engine/generation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace waste {

Result<std::shared_ptr<Generation>> Generation::Create(std::shared_ptr<Session> session,
                                                       const std::string_view* prompt,
                                                       const GenerationOptions& options) {
  WASTE_ASSIGN(const Session::Claim claim, session->TryClaimIdle());
  WASTE_TRY(CheckSamplerOptions(options.sampler, session->model().info().vocab));
  if (options.max_tokens < 0) return Failure(Code::kArgument, "max_tokens is ", options.max_tokens);
  WASTE_ASSIGN(PreparedPrompt prepared, session->PreparePrompt(prompt, options.raw));
  session->set_generating(true);
  return std::shared_ptr<Generation>(
      new Generation(std::move(session), std::move(prepared), options));
}

Generation::Generation(std::shared_ptr<Session> session, PreparedPrompt prompt,
                       const GenerationOptions& options)
    : session_(std::move(session)), prompt_(std::move(prompt)), options_(options) {}

Generation::~Generation() {
  if (released_) return;
  const Session::Claim claim = session_->WaitClaim();
  Release(FinishReason::kCancelled);
}

Status Generation::CheckToken(int32_t token) const {
  const int64_t vocab = session_->model().info().vocab;
  if (token >= 0 && token < vocab) return Status();
  return Failure(Code::kArgument, "token ", token, " is not below the vocabulary of ", vocab);
}

Status Generation::CheckNotStarted() const {
  if (!sampler_ && !released_) return Status();
  return Failure(Code::kArgument, "the answer has begun; set stops and biases before waste_next");
}

Status Generation::AddStop(std::string_view text) {
  WASTE_ASSIGN(const Session::Claim claim, session_->TryClaim());
  WASTE_TRY(CheckNotStarted());
  if (text.empty()) return Failure(Code::kArgument, "a stop string is empty");
  text_.AddStop(std::string(text));
  return Status();
}

Status Generation::AddStopToken(int32_t token) {
  WASTE_ASSIGN(const Session::Claim claim, session_->TryClaim());
  WASTE_TRY(CheckNotStarted());
  WASTE_TRY(CheckToken(token));
  extra_stops_.push_back(token);
  return Status();
}

Status Generation::AddBias(int32_t token, double bias) {
  WASTE_ASSIGN(const Session::Claim claim, session_->TryClaim());
  WASTE_TRY(CheckNotStarted());
  WASTE_TRY(CheckToken(token));
  SamplerOptions wanted = options_.sampler;
  wanted.bias.emplace_back(token, bias);
  WASTE_TRY(CheckSamplerOptions(wanted, session_->model().info().vocab));
  options_.sampler = std::move(wanted);
  return Status();
}

Result<NextPiece> Generation::Next(std::span<char> buffer) {
  if (static_cast<int64_t>(buffer.size()) < kMinBuffer)
    return Failure(Code::kArgument, "a buffer of ", buffer.size(), " bytes; at least ", kMinBuffer,
                   " are needed");
  WASTE_ASSIGN(const Session::Claim claim, session_->TryClaim());
  while (true) {
    if (ended_ && !text_.ready() && !(released_ && finish_reason() == FinishReason::kCancelled)) {
      Release(finish_reason());  // a cancel that comes this late does nothing
      return NextPiece{.position = session_->token_count()};
    }
    if (cancelled_.load(std::memory_order_relaxed)) break;
    if (text_.ready()) return Deliver(buffer);
    const Status status = ProduceToken();
    if (!status.ok() && status.code() != Code::kCancelled) return status;
  }
  Release(FinishReason::kCancelled);
  return Failure(Code::kCancelled, "the answer was cancelled after ", tokens_.size(), " tokens");
}

// The prompt joins the session here and not before, so that a generation that is never read changes
// nothing.
void Generation::Start() {
  Session& session = *session_;
  session.Commit(prompt_);
  start_ = static_cast<int64_t>(session.tokens().size());
  if (!options_.raw) tracker_ = session.TrackOpenTurn();
  sampler_.emplace(options_.sampler, session.model().info().vocab);
  logits_.resize(static_cast<size_t>(session.model().info().vocab));
}

Status Generation::ProduceToken() {
  const Phase phase = tokens_.empty() ? Phase::kPrefill : Phase::kDecode;
  if (!sampler_) Start();
  const auto stop = [this] { return cancelled_.load(std::memory_order_relaxed); };
  WASTE_TRY(session_->Run(logits_, phase, stop, &work_));
  WASTE_ASSIGN(const SampledToken sampled, sampler_->Sample(logits_, session_->tokens()));
  logprobs_.push_back(sampled.logprob);
  Take(sampled.id);
  return Status();
}

void Generation::Take(int32_t token) {
  Session& session = *session_;
  tokens_.push_back(token);
  session.Append({&token, 1});
  for (WorkCounters* work : {&session.model().work(), &session.work(), &work_})
    ++work->generated_tokens;

  const Tokenizer& tokenizer = session.model().tokenizer();
  bool ends = IsStopToken(token);
  bool visible = !ends && !tokenizer.IsSpecial(token);
  Channel channel = Channel::kResponse;
  if (tracker_) {
    const ChannelTracker::Step step = tracker_->Feed(token);
    channel = step.channel;
    visible = visible && step.visible;
    ends = ends || step.ends_turn;
  }
  const bool stopped = text_.Add(tokenizer.Bytes(token), visible || options_.markup_out, channel);
  const bool full = static_cast<int64_t>(session.tokens().size()) >= session.context();
  const bool enough =
      options_.max_tokens > 0 && static_cast<int64_t>(tokens_.size()) >= options_.max_tokens;
  if (ends || stopped) {
    End(FinishReason::kStop);
  } else if (full || enough) {
    End(FinishReason::kLength);
  }
}

bool Generation::IsStopToken(int32_t token) const {
  return session_->model().IsStopToken(token) ||
         std::find(extra_stops_.begin(), extra_stops_.end(), token) != extra_stops_.end();
}

void Generation::End(FinishReason reason) {
  text_.Finish();
  ended_ = true;
  finish_.store(reason, std::memory_order_relaxed);
}

// The session is free for others again. A cancelled answer leaves what was handed out.
void Generation::Release(FinishReason reason) {
  if (released_) return;
  released_ = true;
  finish_.store(reason, std::memory_order_relaxed);
  if (reason == FinishReason::kCancelled && sampler_)
    session_->Truncate(start_ + text_.delivered_tokens());
  session_->set_generating(false);
}

NextPiece Generation::Deliver(std::span<char> buffer) {
  const TextPiece piece = text_.Take(static_cast<int64_t>(buffer.size()));
  std::memcpy(buffer.data(), piece.text.data(), piece.text.size());
  const size_t last = static_cast<size_t>(piece.end_index - 1);
  return {.bytes = static_cast<int64_t>(piece.text.size()),
          .token = tokens_[last],
          .first_index = piece.first_index,
          .token_count = piece.token_count,
          .channel = piece.channel,
          .logprob = logprobs_[last],
          .position = session_->token_count()};
}

Status Generation::CopyTokens(std::vector<int32_t>& tokens, std::vector<double>& logprobs) {
  WASTE_ASSIGN(const Session::Claim claim, session_->TryClaim());
  tokens = tokens_;
  logprobs = logprobs_;
  return Status();
}

}  // namespace waste
