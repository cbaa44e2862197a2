// SPDX-License-Identifier: Apache-2.0
//
// The forward pass: one step over rows of tokens, of one session or of several. Reads like the
// paper; one block a file (kda.cc, mla.cc, moe.cc, ffn.cc, attn_res.cc). Scratch is allocated once,
// nothing in a step. A row's result does not depend on the other rows of its step, on how a prompt
// is cut into steps, on threads, or on where experts came from. One Step at a time.

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
#include "model/table_compute.h"
#include "model/weights.h"
#include "parallel/thread_pool.h"
#include "stream/expert_source.h"

namespace waste {

// Rows of one session: `tokens` continue it at state->position(). Logits of the last n tokens are
// written to `logits`, [n, vocab]. Rows of a prompt and those of a token that is being written, or
// of few tokens read at once, are computed in different ways, which agree to the tolerance of fast
// arithmetic. A session whose own `stop` holds when the step is done is left as it was, and
// `committed` says so.
struct SessionRows {
  SessionState* state = nullptr;
  std::span<const int32_t> tokens;
  std::span<float> logits;
  bool is_prompt = true;
  const std::function<bool()>* stop = nullptr;
  bool committed = false;
};

struct ForwardOptions {
  // Of a step, beside kMaxWritten; a power of two of kLeastRows or more, or less than that.
  int64_t max_rows = 64;
  // Inputs of the trunk in integers, and experts of rows that are no prompt's in look-up tables,
  // where kernels have them.
  bool fast = false;
};

class Forward {
 public:
  // Prompts are cut into steps that end at multiples of their greatest length. Lengths from this
  // one on give the same bits.
  static constexpr int64_t kLeastRows = 256;
  static constexpr int64_t kMostRows = 4096;
  // Rows that are no prompt's which one step may have.
  static constexpr int64_t kMaxWritten = TableScratch::kRows;

  // What layers hand to the next one, for the oracle: [rows, hidden].
  using HiddenObserver = std::function<void(int64_t layer, std::span<const float> hidden)>;

  static int64_t ScratchBytes(const ModelConfig& config, const ExpertCodec& codec,
                              const Kernels& kernels, int32_t threads,
                              const ForwardOptions& options);
  // Everything passed in must outlive the Forward. Errors: kNoMemory.
  static Result<std::unique_ptr<Forward>> Create(const ModelConfig& config, const Weights& weights,
                                                 const Container& container, const Kernels& kernels,
                                                 ThreadPool& pool, ExpertSource& experts,
                                                 const ForwardOptions& options);
  ~Forward();

  // Runs at most max_rows + kMaxWritten rows in all, of them kMaxWritten that are no prompt's, and
  // commits the sessions' states; on failure no state has changed. Tokens are below the vocabulary
  // and every session has room for its rows. `stop` is polled several times a layer and by the
  // expert source: kCancelled. Other errors: kIo, kCorrupt.
  Status Step(std::span<SessionRows> sessions, const std::function<bool()>& stop);

  // What steps compute in; between them nothing in it is needed, and it may be discarded.
  std::span<uint8_t> scratch();

  void set_hidden_observer(HiddenObserver observer);

 private:
  struct Impl;
  explicit Forward(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_FORWARD_H_
