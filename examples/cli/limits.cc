// SPDX-License-Identifier: Apache-2.0

#include "limits.h"

#include <unistd.h>
#include <waste/waste.h>

#include <algorithm>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "page_memory.h"
#include "rate.h"

namespace waste_cli {
namespace {

constexpr int64_t kFmaRounds = 100'000;

// Asks for two cache lines that will be read soon, as kernels do: alone, some CPUs read a third
// less than they can.
void FetchAhead(const uint8_t* at) {
  constexpr uintptr_t kAhead = 16384, kLine = 64;
  const auto address = reinterpret_cast<uintptr_t>(at) + kAhead;  // need not exist
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
  __builtin_prefetch(reinterpret_cast<const void*>(address + kLine), 0, 2);
}

#if defined(__x86_64__)
template <bool kFetches>
__attribute__((target("avx2"))) void Sum(const uint8_t* data, int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t at = 0; at < bytes; at += 128) {
    if constexpr (kFetches) FetchAhead(data + at);
    for (int i = 0; i < 4; ++i)
      sums[i] = _mm256_xor_si256(
          sums[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + at + 32 * i)));
  }
  Keep(sums);
}

// Twelve sums hide the latency; they begin differently, or the compiler would compute one of them.
__attribute__((target("avx2,fma"))) double FmaAvx2() {
  const __m256 factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(0.001f);
  __m256 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kFmaRounds; ++round)
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, addend);
  Keep(sums);
  return 2.0 * 8 * 12 * kFmaRounds;
}

__attribute__((target("avx512f"))) double FmaAvx512() {
  const __m512 factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(0.001f);
  __m512 sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t round = 0; round < kFmaRounds; ++round)
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, addend);
  Keep(sums);
  return 2.0 * 16 * 12 * kFmaRounds;
}

__attribute__((target("avx512f,avx512vnni"))) double MultiplyWords() {
  const __m512i factor = _mm512_set1_epi32(3);
  __m512i sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = _mm512_set1_epi32(i);
  for (int64_t round = 0; round < kFmaRounds; ++round)
    for (__m512i& sum : sums) sum = _mm512_dpwssd_epi32(sum, factor, factor);
  Keep(sums);
  return 2.0 * 32 * 12 * kFmaRounds;
}
#elif defined(__aarch64__)
// Four pipes with a latency of four cycles are kept busy by sixteen sums.
double FmaNeon() {
  constexpr int kSums = 24;
  const float32x4_t factor = vdupq_n_f32(0.999f), addend = vdupq_n_f32(0.001f);
  float32x4_t sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = vdupq_n_f32(static_cast<float>(i));
  for (int64_t round = 0; round < kFmaRounds; ++round)
    for (float32x4_t& sum : sums) sum = vfmaq_f32(sum, factor, addend);
  Keep(sums);
  return 2.0 * 4 * kSums * kFmaRounds;
}
#endif

template <bool kFetches>
void SumPlainly(const uint8_t* data, int64_t bytes) {
  uint64_t sums[16] = {};
  for (int64_t at = 0; at + 128 <= bytes; at += 128) {
    if constexpr (kFetches) FetchAhead(data + at);
    const auto* words = reinterpret_cast<const uint64_t*>(data + at);
    for (int i = 0; i < 16; ++i) sums[i] ^= words[i];
  }
  Keep(sums);
}

double MultiplyPlainly() {
  constexpr int64_t kRounds = 100'000;
  float sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = static_cast<float>(i);
  for (int64_t round = 0; round < kRounds; ++round) {
    for (float& sum : sums) sum = sum * 0.999f + 0.001f;
    Keep(sums);
  }
  return 2.0 * 16 * kRounds;
}

// Larger than all caches together, as far as the system tells.
int64_t BytesBeyondCaches() {
  constexpr int64_t kLeast = int64_t{256} << 20, kMost = int64_t{1} << 30;
  int64_t cache = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return std::clamp(2 * cache, kLeast, kMost);
}

}  // namespace

double MemoryLimit(int32_t threads) {
  const int64_t share = BytesBeyondCaches() / threads / kPage * kPage;
  std::vector<Memory> shares;
  for (int32_t thread = 0; thread < threads; ++thread) {
    shares.push_back(AllocatePages(share));
    std::fill_n(shares.back().get(), share, uint8_t{1});
  }
  void (*ways[])(const uint8_t*, int64_t) = {SumPlainly<false>, SumPlainly<true>};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    ways[0] = Sum<false>;
    ways[1] = Sum<true>;
  }
#endif
  double best = 0;
  for (const auto way : ways)
    best = std::max(best, BestRate(threads, [&](int32_t thread) {
                      way(shares[static_cast<size_t>(thread)].get(), share);
                      return static_cast<double>(share);
                    }));
  return best;
}

double FmaLimit(int32_t threads, int32_t isa) {
  double (*work)() = MultiplyPlainly;
#if defined(__x86_64__)
  if (isa == WASTE_ISA_AVX2) work = FmaAvx2;
  if (isa == WASTE_ISA_AVX512 || isa == WASTE_ISA_AVX512_VBMI) work = FmaAvx512;
#elif defined(__aarch64__)
  if (isa == WASTE_ISA_NEON) work = FmaNeon;
#endif
  return BestRate(threads, [&](int32_t) { return work(); });
}

double WordLimit([[maybe_unused]] int32_t threads, [[maybe_unused]] int32_t isa) {
#if defined(__x86_64__)
  if (isa == WASTE_ISA_AVX512_VBMI)
    return BestRate(threads, [](int32_t) { return MultiplyWords(); });
#endif
  return 0;
}

}  // namespace waste_cli
