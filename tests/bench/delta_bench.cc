// SPDX-License-Identifier: Apache-2.0
//
// The delta rule of KDA layers, by the step and in chunks.

#include <algorithm>
#include <string>
#include <vector>

#include "bench_case.h"
#include "model/delta_rule.h"

namespace waste {
namespace {

// One head of 128 after the other, `heads` of them: 32 stay in cache and are updated where they
// are; thousands do not, and are written beside what is read, as the model's are.
void DeltaStep(benchmark::State& state, int64_t heads) {
  constexpr int64_t kDim = 128;
  const int64_t floats = heads * kDim * kDim, apart = heads > 32 ? floats : 0;
  AlignedBuffer states = *AlignedBuffer::AllocateHuge((floats + apart) * 4);
  std::fill_n(states.floats(), floats + apart, 0.01f);  // touches all pages
  const AlignedBuffer in = RandomFloats(4 * kDim);
  const std::vector<float> decay(kDim, 0.9f);
  float out[kDim], scratch[kDim];
  int64_t from = 0;
  for (auto _ : state) {
    for (int64_t at = 0; at < floats; at += kDim * kDim)
      kernels->delta_step(states.floats() + from + at, states.floats() + apart - from + at,
                          decay.data(), in.floats(), in.floats() + kDim, in.floats() + 2 * kDim,
                          0.01f, kDim, kDim, out, scratch);
    from = apart - from;
  }
  // Read and written.
  ReportBytes(state, 2 * heads * kDim * kDim * 4, heads > 32 ? MemoryLimit(state.threads()) : 0);
}

// The chunked form for a tile of 256 rows and 32 heads: time a row, of all heads.
void DeltaChunk(benchmark::State& state) {
  constexpr int64_t kDim = 128, kHeads = 32, kRows = 256;
  AlignedBuffer states = *AlignedBuffer::AllocateZeroed(kHeads * kDim * kDim * 4);
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(DeltaScratchBytes(kDim));
  AlignedBuffer rows = RandomFloats(4 * kRows * kDim);
  std::vector<float> decay(kRows * kDim, 0.9f), beta(kRows, 0.01f);
  float* const at = rows.floats();
  const DeltaRows in{.q = at,
                     .k = at + kRows * kDim,
                     .v = at + 2 * kRows * kDim,
                     .decay = decay.data(),
                     .stride = kDim,
                     .beta = beta.data(),
                     .beta_stride = 1,
                     .count = kRows,
                     .position = 0,
                     .out = at + 3 * kRows * kDim};
  for (auto _ : state)
    for (int64_t head = 0; head < kHeads; ++head) {
      float* const s = states.floats() + head * kDim * kDim;
      DeltaChunked(*kernels, in, kDim, s, s, scratch.data());
    }
  // Three products of the state's size a row and head.
  ReportFlops(state, 2 * 3 * kHeads * kRows * kDim * kDim);
  state.counters["us/row"] =
      benchmark::Counter(static_cast<double>(kRows * state.iterations()) / 1e6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

void RegisterDelta() {
  for (const int64_t heads : {32, 2048})
    benchmark::RegisterBenchmark(("delta_step/heads:" + std::to_string(heads)).c_str(),
                                 [=](benchmark::State& s) { DeltaStep(s, heads); });
  benchmark::RegisterBenchmark("delta_chunked", DeltaChunk);
}

}  // namespace waste
