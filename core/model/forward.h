// SPDX-License-Identifier: Apache-2.0
//
// The forward pass: one step over rows of tokens, of one session or of several. Reads like the
// paper; one block a file (kda.cc, mla.cc, moe.cc, ffn.cc, attn_res.cc). Scratch is allocated once,
// nothing in a step. A row's result does not depend on the other rows of its step, on threads, or
// on where experts came from (the chunked delta rule, used for 16 rows and more of one session,
// agrees with the recurrence to 1e-6 of the largest value). One Step at a time.

#ifndef WASTE_CORE_MODEL_FORWARD_H_
#define WASTE_CORE_MODEL_FORWARD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "container/container.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/state.h"
#include "model/weights.h"
#include "parallel/thread_pool.h"
#include "stream/expert_source.h"

namespace waste {

// Rows of one session: `tokens` continue it at state->position(). Logits of the last n tokens are
// written to `logits`, [n, vocab]. A session whose own `stop` holds when the step is done is left
// as it was, and `committed` says so.
struct SessionRows {
  SessionState* state = nullptr;
  std::span<const int32_t> tokens;
  std::span<float> logits;
  const std::function<bool()>* stop = nullptr;
  bool committed = false;
};

class Forward {
 public:
  // Most rows of one step. Prompts are cut into steps of this many rows from their start on.
  static constexpr int64_t kMaxRows = 64;

  // What layers hand to the next one, for the oracle: [rows, hidden].
  using HiddenObserver = std::function<void(int64_t layer, std::span<const float> hidden)>;

  static int64_t ScratchBytes(const ModelConfig& config, int64_t max_context, int32_t threads);
  // Everything passed in must outlive the Forward. Errors: kNoMemory.
  static Result<std::unique_ptr<Forward>> Create(const ModelConfig& config, const Weights& weights,
                                                 const Container& container, const Kernels& kernels,
                                                 ThreadPool& pool, ExpertSource& experts,
                                                 int64_t max_context);
  ~Forward();

  // Runs at most kMaxRows rows in all and commits the sessions' states; on failure no state has
  // changed. Tokens are below the vocabulary and every session has room for its rows. `stop` is
  // polled once a layer and by the expert source: kCancelled. Other errors: kIo, kCorrupt.
  Status Step(std::span<SessionRows> sessions, const std::function<bool()>& stop);

  void set_hidden_observer(HiddenObserver observer);

 private:
  struct Impl;
  explicit Forward(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_FORWARD_H_
