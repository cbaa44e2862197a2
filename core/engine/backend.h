// SPDX-License-Identifier: Apache-2.0
//
// What a session needs of a model: tokens in, logits out. Two exist: ContainerBackend runs a real
// model, ScriptedBackend says what a JSON file tells it, so that bindings and error paths are
// tested without weights. Steps of one backend are serialised by the Model's BatchQueue.

#ifndef WASTE_CORE_ENGINE_BACKEND_H_
#define WASTE_CORE_ENGINE_BACKEND_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "budget/memory_plan.h"
#include "chat/chat_format.h"
#include "os/cpu_list.h"
#include "os/reservation.h"
#include "os/system.h"
#include "tokenizer/tokenizer.h"

namespace waste {

// The state of one session, whatever the backend keeps for it. One thread at a time.
class Timeline {
 public:
  virtual ~Timeline() = default;

  virtual int64_t position() const = 0;  // tokens it has seen
  // Goes back to some position at or before `position`; the session runs the rest again.
  virtual void RewindTo(int64_t position) = 0;
  // Becomes a copy of `other`, made by the same backend, whose position fits.
  virtual void CopyFrom(const Timeline& other) = 0;
  virtual int64_t SavedBytes() const = 0;
  virtual void SaveTo(std::span<uint8_t> out) const = 0;
  // Errors: kCorrupt if the bytes are no state of `position` tokens; then nothing has changed.
  virtual Status LoadFrom(std::span<const uint8_t> bytes, int64_t position) = 0;
};

// As ExpertCacheCounters says.
struct ExpertCounters {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t foreseen = 0;
  int64_t bytes_read = 0;
  int64_t speculative_reads = 0;
  int64_t speculative_bytes = 0;
  int64_t stalls = 0;
  int64_t read_us = 0;
};

// What came between two readings.
inline ExpertCounters operator-(const ExpertCounters& after, const ExpertCounters& before) {
  return {after.hits - before.hits,
          after.misses - before.misses,
          after.foreseen - before.foreseen,
          after.bytes_read - before.bytes_read,
          after.speculative_reads - before.speculative_reads,
          after.speculative_bytes - before.speculative_bytes,
          after.stalls - before.stalls,
          after.read_us - before.read_us};
}

// Of what a step of `rows` rows used, the part of the rows [begin, end). Rounded so that the parts
// of consecutive rows add up to the whole, to the last byte.
inline ExpertCounters ShareOf(const ExpertCounters& whole, int64_t begin, int64_t end,
                              int64_t rows) {
  const auto part = [&](int64_t value) { return value * end / rows - value * begin / rows; };
  return {part(whole.hits),
          part(whole.misses),
          part(whole.foreseen),
          part(whole.bytes_read),
          part(whole.speculative_reads),
          part(whole.speculative_bytes),
          part(whole.stalls),
          part(whole.read_us)};
}

// Tokens that continue one session, as its part of a step, and what became of them.
struct SessionStep {
  Timeline* timeline = nullptr;
  std::span<const int32_t> tokens;  // at least one, below vocab, and they fit the timeline
  std::span<float> logits;          // of the last logits.size() / vocab of them
  bool is_prompt = false;           // else a token of an answer, or at most kMaxWritten of a text
  // Whether the session has given the step up. Called by whichever thread runs the step, while the
  // one that asked for it waits. Null: never.
  const std::function<bool()>* stop = nullptr;

  Status status = {};        // if not ok, the timeline is as it was
  ExpertCounters used = {};  // its share

  bool stopped() const { return stop != nullptr && *stop && (*stop)(); }
};

struct BackendInfo {
  std::string name;  // of the architecture
  int64_t vocab = 0;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t experts = 0;
  int64_t top_k = 0;
  int64_t expert_bytes = 0;
  int64_t container_bytes = 0;
  int64_t token_trunk_bytes = 0;  // of weights that every token reads from memory
  int64_t token_flops = 0;        // of a token's matrices, experts included
  int64_t context = 0;            // of a session unless it asks for less
  // How long a step may be, and what of scratch the longer ones take; the shortest first.
  std::array<PrefillStep, 5> prefill_steps = {{{64, 0}}};
  int32_t threads = 1;
  CpuSet cpus;  // where steps are to run; empty: anywhere
  Isa isa = Isa::kScalar;
  bool direct_io = false;
  int32_t lanes = 0;                 // reads at once; 0 without experts on disk
  uint64_t identity = 0;             // of the weights: a saved session of another is refused
  std::vector<int32_t> stop_tokens;  // that end any text: eos of the config, [EOS]
};

class Backend {
 public:
  // Rows that are no prompt's which one Step may have. So few tokens read at once are computed as
  // tokens of an answer are: as fast for each, which a prompt is only when it is long.
  static constexpr int64_t kMaxWritten = 32;

  virtual ~Backend() = default;

  virtual const BackendInfo& info() const = 0;
  virtual const MemoryPlan& plan() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatFormat* chat() const = 0;  // null: no chat format

  virtual int64_t TimelineBytes(int64_t context) const = 0;
  virtual Result<std::unique_ptr<Timeline>> NewTimeline(int64_t context) = 0;

  // Runs the tokens of all sessions, at most the rows of LimitPrefill and kMaxWritten more, each of
  // another timeline, writes their logits and sets each status. Stops are polled at least once a
  // layer: when all have stopped, the step ends; one that stops alone gets kCancelled at the end
  // and leaves the others what they would get without it. Errors of reads are those of every
  // session that needed the read.
  virtual void Step(std::span<SessionStep> sessions) = 0;

  virtual ExpertCounters counters() const = 0;
  // The next line for the model's log: what steps had to go around.
  virtual std::optional<std::string> NextNotice() { return std::nullopt; }
  // How many bytes of experts may be kept beyond staging; gives memory back at once, or when the
  // experts that a running Step uses are free. Any thread.
  virtual void LimitCache(int64_t bytes) = 0;
  // Steps have at most step.rows rows from now on; gives memory back that only longer ones use. Not
  // while a Step runs.
  virtual void LimitPrefill(const PrefillStep& /*step*/) {}
};

struct OpenedBackend {
  Reservation reservation;  // of its memory, which goes first
  std::unique_ptr<Backend> backend;
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_BACKEND_H_
