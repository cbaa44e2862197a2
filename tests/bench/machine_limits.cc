// SPDX-License-Identifier: Apache-2.0

#include "machine_limits.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/avx512_intrinsics.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int kRuns = 5;
constexpr std::chrono::milliseconds kRunTime{80};
constexpr int64_t kMemoryBytes = int64_t{128} << 20;  // a thread's; larger than caches
constexpr int64_t kRounds = 20'000;

template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// What `work` returns a second on all threads together, which begin at once; the best of kRuns.
double BestRate(int32_t threads, const std::function<double(int32_t)>& work) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::atomic<double> total{0};
    std::vector<std::thread> team;
    const auto start = Clock::now();
    for (int32_t thread = 0; thread < threads; ++thread)
      team.emplace_back([&, thread] {
        double done = 0;
        while (Clock::now() - start < kRunTime) done += work(thread);
        total.fetch_add(done);
      });
    for (std::thread& thread : team) thread.join();
    best = std::max(best, total / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) double ReadAvx2(const uint8_t* data, int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t at = 0; at < bytes; at += 128)
    for (int i = 0; i < 4; ++i)
      sums[i] = _mm256_xor_si256(
          sums[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + at + 32 * i)));
  Keep(sums);
  return static_cast<double>(bytes);
}

// Twelve sums hide the latency; they begin differently, or the compiler would compute one of them.
__attribute__((target("avx2,fma"))) double FmaAvx2() {
  const __m256 factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(0.001f);
  __m256 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round)
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, addend);
  Keep(sums);
  return 2.0 * 8 * 12 * kRounds;
}

__attribute__((target("avx512f"))) double FmaAvx512() {
  const __m512 factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(0.001f);
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round)
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, addend);
  Keep(sums);
  return 2.0 * 16 * 12 * kRounds;
}

__attribute__((target("avx512f,avx512bf16"))) double Bf16Avx512() {
  const auto factor = (__m512bh)_mm512_set1_epi16(0x3F80);
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kRounds; ++round)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor);
  Keep(sums);
  return 2.0 * 32 * 12 * kRounds;
}

double Fma() {
  if (CpuHas(Isa::kAvx512)) return FmaAvx512();
  return CpuHas(Isa::kAvx2) ? FmaAvx2() : 0;
}

bool HasBf16() { return CpuHas(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16"); }
double Bf16() { return Bf16Avx512(); }
double Read(const uint8_t* data, int64_t bytes) { return ReadAvx2(data, bytes); }

#else

double Fma() { return 0; }
bool HasBf16() { return false; }
double Bf16() { return 0; }

double Read(const uint8_t* data, int64_t bytes) {
  uint64_t sums[8] = {};
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  for (int64_t i = 0; i < bytes / 8; i += 8)
    for (int j = 0; j < 8; ++j) sums[j] ^= words[i + j];
  Keep(sums);
  return static_cast<double>(bytes);
}

#endif

// What a plain look-up kernel does for each index, and nothing else.
double LookUp(const std::vector<uint8_t>& indices, const std::vector<float>& table) {
  float sums[8] = {};
  for (size_t i = 0; i < indices.size(); i += 8)
    for (size_t j = 0; j < 8; ++j) sums[j] += table[indices[i + j]];
  Keep(sums);
  return static_cast<double>(indices.size());
}

double MemoryRate(int32_t threads, std::vector<AlignedBuffer>& shares) {
  return BestRate(threads, [&](int32_t thread) {
    return Read(shares[static_cast<size_t>(thread)].data(), kMemoryBytes);
  });
}

}  // namespace

MachineLimits MeasureLimits(int32_t threads) {
  MachineLimits limits;
  std::vector<AlignedBuffer> shares;
  for (int32_t thread = 0; thread < threads; ++thread) {
    shares.push_back(*AlignedBuffer::AllocateHuge(kMemoryBytes));
    std::fill_n(shares.back().data(), kMemoryBytes, uint8_t{1});
  }
  limits.memory_bytes_s = MemoryRate(1, shares);
  limits.memory_all_bytes_s = MemoryRate(threads, shares);
  limits.fma_flops = BestRate(1, [](int32_t) { return Fma(); });
  if (HasBf16()) limits.bf16_flops = BestRate(1, [](int32_t) { return Bf16(); });
  std::vector<uint8_t> indices(4096);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint8_t>(i * 167);
  const std::vector<float> table(256, 1.0f);
  limits.lookups_s = BestRate(1, [&](int32_t) { return LookUp(indices, table); });
  return limits;
}

}  // namespace waste
