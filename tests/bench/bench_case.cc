// SPDX-License-Identifier: Apache-2.0

#include "bench_case.h"

#include <cstring>
#include <random>

namespace waste {

const Kernels* kernels = nullptr;
MachineLimits limits;

AlignedBuffer RandomBytes(int64_t bytes) {
  AlignedBuffer buffer = *AlignedBuffer::AllocateHuge(bytes);
  std::mt19937_64 random(7);
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(buffer.data() + i, &word, 8);
  }
  return buffer;
}

AlignedBuffer RandomFloats(int64_t count) {
  AlignedBuffer buffer = *AlignedBuffer::AllocateHuge(count * 4);
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < count; ++i) buffer.floats()[i] = normal(random);
  return buffer;
}

AlignedBuffer Scales(int64_t count) {
  AlignedBuffer buffer = *AlignedBuffer::AllocateHuge(count * 2);
  for (int64_t i = 0; i < count; ++i) {
    buffer.data()[2 * i] = 0;
    buffer.data()[2 * i + 1] = 0x14;
  }
  return buffer;
}

void ReportBytes(benchmark::State& state, int64_t bytes, double limit) {
  const double done = static_cast<double>(bytes * state.iterations());
  state.counters["GB/s"] = benchmark::Counter(done / 1e9, benchmark::Counter::kIsRate);
  if (limit > 0)
    state.counters["share"] = benchmark::Counter(done / limit, benchmark::Counter::kIsRate);
}

static void ReportArithmetic(benchmark::State& state, int64_t ops, double limit) {
  const double done = static_cast<double>(ops * state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(done / 1e9, benchmark::Counter::kIsRate);
  if (limit > 0)
    state.counters["share"] = benchmark::Counter(done / limit, benchmark::Counter::kIsRate);
}

void ReportFlops(benchmark::State& state, int64_t flops) {
  ReportArithmetic(state, flops, limits.fma_flops);
}

void ReportWordOps(benchmark::State& state, int64_t ops) {
  ReportArithmetic(state, ops, limits.word_ops);
}

void SetThreads(benchmark::internal::Benchmark* bench, int32_t threads) {
  bench->UseRealTime()->Threads(1);
  if (threads > 1) bench->Threads(threads);
}

double MemoryLimit(int32_t threads) {
  return threads == 1 ? limits.memory_bytes_s : limits.memory_all_bytes_s;
}

}  // namespace waste
