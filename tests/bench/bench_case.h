// SPDX-License-Identifier: Apache-2.0
//
// What the files of kernel_bench share: the kernels and the limits they stand beside, shapes of
// Kimi-Linear 48B, data by chance, and counters. `share` is what was reached of the limit that
// binds: what has few inputs streams from memory (more matrices are used in turn than caches hold),
// what has many is bound by arithmetic. Each file of benchmarks has one function that registers
// them; main calls it once `kernels` and `limits` are set.

#ifndef WASTE_TESTS_BENCH_BENCH_CASE_H_
#define WASTE_TESTS_BENCH_BENCH_CASE_H_

#include <benchmark/benchmark.h>

#include <cstdint>

#include "base/aligned_buffer.h"
#include "kernels/kernels.h"
#include "machine_limits.h"

namespace waste {

constexpr int64_t kStreamBytes = int64_t{96} << 20;  // a thread's matrices; caches hold less
constexpr int64_t kHidden = 2304;
constexpr int64_t kInner = 1024;

extern const Kernels* kernels;
extern MachineLimits limits;

AlignedBuffer RandomBytes(int64_t bytes);
AlignedBuffer RandomFloats(int64_t count);  // normal, of variance 1
AlignedBuffer Scales(int64_t count);        // f16 1/1024 everywhere

// GB/s of `bytes` an iteration; a limit of 0 is none.
void ReportBytes(benchmark::State& state, int64_t bytes, double limit);
// GFLOP/s beside one thread's FMA limit, or that of products of words.
void ReportFlops(benchmark::State& state, int64_t flops);
void ReportWordOps(benchmark::State& state, int64_t ops);

// With several threads time is the wall's, so that rates are those of all of them.
void SetThreads(benchmark::internal::Benchmark* bench, int32_t threads);
double MemoryLimit(int32_t threads);

void RegisterTrunk(int32_t threads);
void RegisterExperts(int32_t threads);
void RegisterLookUp(int32_t threads);
void RegisterDelta();
void RegisterMla(int32_t threads);

}  // namespace waste

#endif  // WASTE_TESTS_BENCH_BENCH_CASE_H_
