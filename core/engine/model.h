// SPDX-License-Identifier: Apache-2.0
//
// An open model: the backend, the queue for its steps, and the account of its memory. Shared by any
// number of sessions and threads; immutable but for the account and the log. What the cache may
// hold is the smaller of what the sessions leave of the budget and what memory pressure leaves.

#ifndef WASTE_CORE_ENGINE_MODEL_H_
#define WASTE_CORE_ENGINE_MODEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "engine/backend.h"
#include "engine/batch_queue.h"
#include "engine/open_options.h"
#include "engine/pressure_watcher.h"
#include "engine/work_counters.h"

namespace waste {

class Model {
 public:
  // `path` is a container's folder, or "test:FILE" for a scripted fake. Errors: those of
  // OpenContainerBackend and OpenScriptedBackend; kNoMemory without a thread for the watcher.
  static Result<std::shared_ptr<Model>> Open(const std::string& path, const OpenOptions& options,
                                             std::shared_ptr<Progress> progress);
  // What Open would plan; nothing is loaded.
  static Result<MemoryPlan> Plan(const std::string& path, const OpenOptions& options);

  Model(OpenedBackend opened, std::shared_ptr<Progress> log);

  const BackendInfo& info() const { return backend_->info(); }
  const MemoryPlan& plan() const { return backend_->plan(); }
  const Tokenizer& tokenizer() const { return backend_->tokenizer(); }
  const ChatFormat* chat() const { return backend_->chat(); }
  Progress& log() { return *log_; }
  // Tokens that end any answer: the config's and the chat format's.
  bool IsStopToken(int32_t token) const;

  WorkCounters& work() { return work_; }  // of all sessions
  int64_t charged_bytes() const;          // trunk, scratch, staging, sessions, cache

  // Most rows of the next step of a prompt: as memory is now, and few while other sessions step.
  int64_t StepRows(const Timeline& timeline) const;

  // Memory of one session: the cache makes room, then long steps of prefill. Errors: kRamBudget
  // with the bytes needed.
  Status ChargeSession(int64_t bytes);
  void ReleaseSession(int64_t bytes);

  int64_t TimelineBytes(int64_t context) const { return backend_->TimelineBytes(context); }
  Result<std::unique_ptr<Timeline>> NewTimeline(int64_t context) {
    return backend_->NewTimeline(context);
  }

  // One step of one session, together with those of others that wait at the same time. `used` gets
  // its rows' share of what they cost in experts: the shares of all add up to what was counted.
  // `stop` is polled from other threads too. Errors: those of Backend::Step.
  Status Step(Timeline& timeline, std::span<const int32_t> tokens, std::span<float> logits,
              bool is_prompt, const std::function<bool()>& stop, ExpertCounters& used);
  BatchQueue::Counts batch_counts() const { return steps_.counts(); }

 private:
  void RunBatch(std::span<SessionStep> batch);
  int64_t BytesWithoutCache(int64_t session_bytes) const;
  // Under account_: what the cache may hold. It makes room for sessions, so that the budget is kept
  // as long as they fit it; beyond (automatic budgets only) they have the memory to themselves.
  int64_t CacheLimit() const;
  PrefillStep StepLimit() const;  // the same for the longest step of prefill, which goes last
  void ShareOut();                // under account_, no step running: tells the backend both
  int64_t ChargedBytes() const;
  void ReserveCharged();  // what opening allocated, or more if sessions are charged more

  Status WatchPressure(const OpenOptions& options);
  int64_t LimitUnderPressure(int64_t bytes);

  Reservation reservation_;  // under account_; outlives the memory that it tells of
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<Progress> log_;
  std::vector<int32_t> stop_tokens_;  // sorted
  BatchQueue steps_;
  WorkCounters work_;
  mutable std::mutex account_;
  int64_t session_bytes_ = 0;
  std::atomic<int64_t> step_rows_{1};
  int64_t pressure_bytes_ = INT64_MAX;        // what memory pressure leaves the cache
  std::unique_ptr<PressureWatcher> watcher_;  // last: its thread uses the rest
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_MODEL_H_
