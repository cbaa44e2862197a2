// SPDX-License-Identifier: Apache-2.0
//
// One conversation: the tokens it should hold, and the timeline that has seen a prefix of them.
// What the timeline lacks is pending and runs before the next logits are needed; so a message, a
// rewind, a failed read or a cancelled prefill all leave nothing but pending tokens. Calls are
// serialised by Claim: the second of two callers gets kBusy. Stats may be read by any thread at any
// time.

#ifndef WASTE_CORE_ENGINE_SESSION_H_
#define WASTE_CORE_ENGINE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "chat/chat_format.h"
#include "engine/model.h"
#include "engine/work_counters.h"

namespace waste {

struct SessionOptions {
  int64_t context = 0;  // 0: the open's
  bool thinking = false;
};

// Tokens that would come before an answer or stand for a message, ready to be appended.
struct PreparedPrompt {
  std::vector<int32_t> tokens;
  int64_t bridge_count = 0;  // of them, those that still belong to the turn before
  bool begins_turn = false;  // the model has the floor behind them
};

class Session {
 public:
  // Errors: kArgument (context), kRamBudget, kNoMemory.
  static Result<std::shared_ptr<Session>> Create(std::shared_ptr<Model> model,
                                                 const SessionOptions& options);
  ~Session();

  // The right to call anything below; given back when destroyed.
  class Claim {
   public:
    explicit Claim(std::atomic<bool>* busy) : busy_(busy) {}
    Claim(Claim&& other) noexcept : busy_(std::exchange(other.busy_, nullptr)) {}
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      if (busy_ != nullptr) busy_->store(false, std::memory_order_release);
    }

   private:
    std::atomic<bool>* busy_;
  };
  // Errors: kBusy if another call is running.
  Result<Claim> TryClaim();
  // The same for a call that no generation may live beside; one that does is not disturbed.
  Result<Claim> TryClaimIdle();
  // The same for work that must happen, such as the end of a generation: waits its turn.
  Claim WaitClaim();

  Model& model() { return *model_; }
  const std::shared_ptr<Model>& shared_model() const { return model_; }
  int64_t context() const { return context_; }
  bool thinking() const { return thinking_; }
  int64_t state_bytes() const { return state_bytes_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  WorkCounters& work() { return work_; }
  int64_t token_count() const { return token_count_.load(std::memory_order_relaxed); }

  // ---- with a Claim ----

  // Whether a generation lives: then only it may change the session.
  bool generating() const { return generating_; }
  void set_generating(bool generating) { generating_ = generating; }

  // The tokens of one message. Errors: kArgument, kUnsupported, kContextFull. Changes nothing.
  Result<PreparedPrompt> PrepareMessage(Role role, std::string_view text) const;
  // The tokens that `prompt` (a user's message; raw: plain text) puts before an answer; without
  // one, those that hand the floor to the model, or none if an answer was cut short and goes on.
  // Errors as PrepareMessage. Changes nothing.
  Result<PreparedPrompt> PreparePrompt(const std::string_view* prompt, bool raw) const;
  // Appends what was prepared; its tokens are pending.
  void Commit(const PreparedPrompt& prompt);

  // Appends tokens that are known to fit; they are pending.
  void Append(std::span<const int32_t> tokens);
  // Forgets all tokens from `count` on.
  void Truncate(int64_t count);
  // Follows the open turn, as far as it has come; null outside a turn.
  std::unique_ptr<ChannelTracker> TrackOpenTurn() const;

  // Runs pending tokens and writes the logits of the last logits.size() / vocab tokens held,
  // running tokens again where their logits are gone. Adds to the session's counters and to
  // `also`'s. `stop` is called from other threads too, while this one waits for a step. Errors:
  // those of Backend::Step; what has run stays, the rest is pending.
  Status Run(std::span<float> logits, Phase phase, const std::function<bool()>& stop,
             WorkCounters* also);

  // Errors: kRamBudget, kNoMemory.
  Result<std::shared_ptr<Session>> Fork();
  // engine/session_file.cc. Errors: kIo; kFormat, kCorrupt, kVersion, kContextFull for Load, which
  // then has changed nothing.
  Status Save(const std::string& path) const;
  Status Load(const std::string& path);

 private:
  Status CheckIdle() const;  // kBusy while a generation lives
  // An answer inside `tokens_`: [begin, end), its closing markup included.
  struct Turn {
    int64_t begin;
    int64_t end;  // -1: still open
  };

  Session(std::shared_ptr<Model> model, const SessionOptions& options, int64_t state_bytes,
          std::unique_ptr<Timeline> timeline);

  Status CheckFits(size_t more, int64_t reserved) const;
  bool turn_open() const { return !turns_.empty() && turns_.back().end < 0; }
  // What must come before a new message: the prelude of an empty session, or the end of an open
  // turn.
  PreparedPrompt Bridge() const;
  Status AppendMessage(Role role, std::string_view text, PreparedPrompt& prompt) const;
  void TokensChanged();

  std::shared_ptr<Model> model_;
  const int64_t context_;
  const bool thinking_;
  const int64_t state_bytes_;
  std::unique_ptr<Timeline> timeline_;
  std::vector<int32_t> tokens_;  // all that the session holds; the timeline has seen a prefix
  std::vector<Turn> turns_;
  std::atomic<bool> generating_{false};
  std::atomic<bool> busy_{false};
  std::atomic<int64_t> token_count_{0};
  WorkCounters work_;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_SESSION_H_
