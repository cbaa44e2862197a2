// SPDX-License-Identifier: Apache-2.0
//
// What work cost, added up, for a model, a session or a generation. Written by the thread that
// waited for the step, read by any thread at any time; each number is exact, a set of them may be
// one step apart.

#ifndef WASTE_CORE_ENGINE_WORK_COUNTERS_H_
#define WASTE_CORE_ENGINE_WORK_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "engine/backend.h"

namespace waste {

// Which of the counters a run of tokens adds to.
enum class Phase { kPrefill, kDecode };

struct WorkCounters {
  std::atomic<int64_t> prompt_tokens{0};
  std::atomic<int64_t> generated_tokens{0};
  std::atomic<int64_t> prefill_us{0};
  std::atomic<int64_t> decode_us{0};
  std::atomic<int64_t> hits{0};
  std::atomic<int64_t> foreseen{0};
  std::atomic<int64_t> misses{0};
  std::atomic<int64_t> bytes_read{0};
  std::atomic<int64_t> speculative_reads{0};
  std::atomic<int64_t> speculative_bytes{0};
  std::atomic<int64_t> stalls{0};
  std::atomic<int64_t> read_us{0};

  void AddRun(Phase phase, int64_t rows, int64_t micros, const ExpertCounters& used) {
    if (phase == Phase::kPrefill) prompt_tokens += rows;
    (phase == Phase::kPrefill ? prefill_us : decode_us) += micros;
    hits += used.hits;
    foreseen += used.foreseen;
    misses += used.misses;
    bytes_read += used.bytes_read;
    speculative_reads += used.speculative_reads;
    speculative_bytes += used.speculative_bytes;
    stalls += used.stalls;
    read_us += used.read_us;
  }
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_WORK_COUNTERS_H_
