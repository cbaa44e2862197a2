// SPDX-License-Identifier: Apache-2.0
//
// One answer in progress: pulls tokens out of a session, one Next at a time, on the caller's
// thread. Nothing happens before the first Next. After a cancel the session holds the prompt and
// exactly the tokens whose text was handed out; after a normal end all tokens of the answer. Cancel
// is for any thread; everything else is for one at a time (kBusy otherwise).

#ifndef WASTE_CORE_ENGINE_GENERATION_H_
#define WASTE_CORE_ENGINE_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "chat/chat_format.h"
#include "engine/answer_text.h"
#include "engine/session.h"
#include "sampler/sampler.h"

namespace waste {

struct GenerationOptions {
  SamplerOptions sampler;
  int64_t max_tokens = 0;  // 0: until the turn ends or the context is full
  bool raw = false;
  bool markup_out = false;
};

// The values are the C API's.
enum class FinishReason : int32_t { kNone = 0, kStop = 1, kLength = 2, kCancelled = 3 };

// What one Next handed out.
struct NextPiece {
  int64_t bytes = 0;  // 0: the answer is finished
  int32_t token = -1;
  int64_t first_index = 0;
  int64_t token_count = 0;
  Channel channel = Channel::kResponse;
  double logprob = 0;
  int64_t position = 0;
};

class Generation {
 public:
  static constexpr int64_t kMinBuffer = 16;  // bytes

  // `prompt` may be null (see Session::PreparePrompt). Errors: kBusy, kArgument, kUnsupported,
  // kContextFull; the session is as it was then.
  static Result<std::shared_ptr<Generation>> Create(std::shared_ptr<Session> session,
                                                    const std::string_view* prompt,
                                                    const GenerationOptions& options);
  ~Generation();

  // Before the first Next. Errors: kArgument, kBusy.
  Status AddStop(std::string_view text);
  Status AddStopToken(int32_t token);
  Status AddBias(int32_t token, double bias);

  // Blocks until there is text for `buffer` (at least kMinBuffer bytes) or the answer is finished.
  // Errors: kCancelled (each time, once cancelled), kBusy, kArgument, those of Backend::Step; after
  // one of these the next call tries again.
  Result<NextPiece> Next(std::span<char> buffer);

  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  FinishReason finish_reason() const { return finish_.load(std::memory_order_relaxed); }

  // Every token so far, and its log-probability (0 unless asked for). Errors: kBusy.
  Status CopyTokens(std::vector<int32_t>& tokens, std::vector<double>& logprobs);

  Session& session() { return *session_; }
  const WorkCounters& work() const { return work_; }

 private:
  Generation(std::shared_ptr<Session> session, PreparedPrompt prompt,
             const GenerationOptions& options);

  Status CheckToken(int32_t token) const;
  Status CheckNotStarted() const;
  void Start();
  Status ProduceToken();
  void Take(int32_t token);
  bool IsStopToken(int32_t token) const;
  void End(FinishReason reason);
  void Release(FinishReason reason);
  NextPiece Deliver(std::span<char> buffer);

  std::shared_ptr<Session> session_;
  PreparedPrompt prompt_;
  GenerationOptions options_;
  std::vector<int32_t> extra_stops_;
  std::optional<Sampler> sampler_;           // once started
  std::unique_ptr<ChannelTracker> tracker_;  // null: raw text
  std::vector<float> logits_;                // [vocab]
  AnswerText text_;
  std::vector<int32_t> tokens_;
  std::vector<double> logprobs_;
  int64_t start_ = 0;   // of the answer, in the session's tokens
  bool ended_ = false;  // no more tokens; text may be left
  bool released_ = false;
  std::atomic<bool> cancelled_{false};
  std::atomic<FinishReason> finish_{FinishReason::kNone};
  WorkCounters work_;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_GENERATION_H_
