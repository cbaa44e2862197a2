// SPDX-License-Identifier: Apache-2.0

#include "machine_limits.h"

#include <vector>

#include "cli/limits.h"
#include "cli/rate.h"
#include "kernels/avx512_intrinsics.h"
#include "os/system.h"

namespace waste {
namespace {

using waste_cli::BestRate;
using waste_cli::Keep;

constexpr int64_t kRounds = 20'000;

#if defined(__x86_64__)

__attribute__((target("avx512f,avx512bf16"))) double Bf16Avx512() {
  const auto factor = (__m512bh)_mm512_set1_epi16(0x3F80);
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor);
  Keep(sums);
  return 2.0 * 32 * 12 * kRounds;
}

bool HasBf16() { return CpuHas(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16"); }
double Bf16() { return Bf16Avx512(); }

#else

bool HasBf16() { return false; }
double Bf16() { return 0; }

#endif

// What a plain look-up kernel does for each index, and nothing else.
double LookUp(const std::vector<uint8_t>& indices, const std::vector<float>& table) {
  float sums[8] = {};
  for (size_t i = 0; i < indices.size(); i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += table[indices[i + j]];
  Keep(sums);
  return static_cast<double>(indices.size());
}

}  // namespace

MachineLimits MeasureLimits(int32_t threads, Isa isa) {
  MachineLimits limits;
  limits.memory_bytes_s = waste_cli::MemoryLimit(1);
  limits.memory_all_bytes_s = waste_cli::MemoryLimit(threads);
  limits.fma_flops = waste_cli::FmaLimit(1, static_cast<int32_t>(isa));  // WASTE_ISA_ are the same
  limits.word_ops = waste_cli::WordLimit(1, static_cast<int32_t>(isa));
  if (HasBf16()) limits.bf16_flops = BestRate(1, [](int32_t) { return Bf16(); });
  std::vector<uint8_t> indices(4096);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint8_t>(i * 167);
  const std::vector<float> table(256, 1.0f);
  limits.lookups_s = BestRate(1, [&](int32_t) { return LookUp(indices, table); });
  return limits;
}

}  // namespace waste
