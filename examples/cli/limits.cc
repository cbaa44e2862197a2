// SPDX-License-Identifier: Apache-2.0

#include "limits.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <waste/waste.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace waste_cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 0.4;
constexpr int kRuns = 4;
constexpr int64_t kMemoryBytes = int64_t{256} << 20;  // in all; larger than caches
constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = int64_t{2} << 20;

// Runs `work`, which returns how much it did, on each thread again and again for `seconds`. Returns
// the sum of what was done a second.
double Rate(int32_t threads, double seconds, const std::function<double(int32_t thread)>& work) {
  std::atomic<double> total{0};
  std::vector<std::thread> team;
  const auto start = Clock::now();
  for (int32_t thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      double done = 0;
      const std::chrono::duration<double> limit(seconds);
      while (Clock::now() - start < limit) done += work(thread);
      total.fetch_add(done);
    });
  for (std::thread& thread : team) thread.join();
  return total / std::chrono::duration<double>(Clock::now() - start).count();
}

// The best of several shorter runs: what else the machine does is no limit of it.
double BestRate(int32_t threads, const std::function<double(int32_t thread)>& work) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run)
    best = std::max(best, Rate(threads, kSeconds / kRuns, work));
  return best;
}

// Keeps the compiler from leaving out what made `value`.
template <typename T>
void Keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

constexpr int64_t kFmaRounds = 100'000;

#if defined(__x86_64__)
__attribute__((target("avx2"))) void Sum(const uint8_t* data, int64_t bytes) {
  __m256i sums[4] = {};
  for (int64_t at = 0; at < bytes; at += 128)
    for (int i = 0; i < 4; ++i)
      sums[i] = _mm256_xor_si256(
          sums[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + at + 32 * i)));
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

void SumPlainly(const uint8_t* data, int64_t bytes) {
  uint64_t sums[4] = {};
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  for (int64_t at = 0; at < bytes / 8; at += 4)
    for (int i = 0; i < 4; ++i) sums[i] ^= words[at + i];
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

struct FreeMemory {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<uint8_t, FreeMemory>;

// In huge pages where the system has them, as the library asks for too: memory in small ones is
// read at half the speed.
Memory Allocate(int64_t bytes) {
  const int64_t unit = bytes >= 4 * kHugePage ? kHugePage : kPage;
  const auto size = static_cast<size_t>((bytes + unit - 1) / unit * unit);
  Memory memory(static_cast<uint8_t*>(std::aligned_alloc(static_cast<size_t>(unit), size)));
#if defined(MADV_HUGEPAGE)
  if (unit == kHugePage) madvise(memory.get(), size, MADV_HUGEPAGE);
#endif
  return memory;
}

int OpenToRead(const std::filesystem::path& path, int flags) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
}

// A bank that is open for reads past the page cache, or for others that are dropped from it again.
struct Bank {
  explicit Bank(const std::filesystem::path& path) {
    struct stat status = {};
    if (stat(path.c_str(), &status) == 0) bytes = status.st_size;
    OpenDirectly(path);
    direct = descriptor >= 0;
    if (!direct) descriptor = OpenToRead(path, 0);
  }
  Bank(Bank&& other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)),
        bytes(other.bytes),
        direct(other.direct),
        refusal(std::move(other.refusal)) {}
  Bank& operator=(Bank&&) = delete;
  ~Bank() {
    if (descriptor >= 0) close(descriptor);
  }

  // Some file systems take the flag and refuse the reads, hence one real read.
  void OpenDirectly(const std::filesystem::path& path) {
#if defined(O_DIRECT)
    if (bytes % kPage != 0) {
      refusal = path.filename().string() + " is no multiple of 4096 bytes";
      return;
    }
    descriptor = OpenToRead(path, O_DIRECT);
    const Memory block = Allocate(kPage);
    if (descriptor >= 0 && pread(descriptor, block.get(), kPage, 0) == kPage) return;
    refusal = std::strerror(errno);
#elif defined(F_NOCACHE)
    descriptor = OpenToRead(path, 0);
    if (descriptor >= 0 && fcntl(descriptor, F_NOCACHE, 1) == 0) return;
    refusal = std::strerror(errno);
#endif
    if (descriptor >= 0) close(std::exchange(descriptor, -1));
  }

  double Read(uint8_t* out, int64_t size, int64_t offset) const {
    const ssize_t got = pread(descriptor, out, static_cast<size_t>(size), offset);
#if defined(POSIX_FADV_DONTNEED)
    if (!direct) posix_fadvise(descriptor, offset, size, POSIX_FADV_DONTNEED);
#endif
    return static_cast<double>(std::max<ssize_t>(got, 0));
  }

  int descriptor = -1;
  int64_t bytes = 0;
  bool direct = false;
  std::string refusal;
};

std::vector<Bank> OpenBanks(const std::string& container, int64_t record_bytes) {
  std::vector<Bank> banks;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(container, none)) {
    if (!entry.path().filename().string().starts_with("experts-L")) continue;
    banks.emplace_back(entry.path());
    if (banks.back().bytes < record_bytes) banks.pop_back();
  }
  return banks;
}

}  // namespace

double MemoryLimit(int32_t threads) {
  const int64_t share = kMemoryBytes / threads / kPage * kPage;
  std::vector<Memory> shares;
  for (int32_t thread = 0; thread < threads; ++thread) {
    shares.push_back(Allocate(share));
    std::fill_n(shares.back().get(), share, uint8_t{1});
  }
#if defined(__x86_64__)
  const auto sum = __builtin_cpu_supports("avx2") ? Sum : SumPlainly;
#else
  const auto sum = SumPlainly;
#endif
  return BestRate(threads, [&](int32_t thread) {
    sum(shares[static_cast<size_t>(thread)].get(), share);
    return static_cast<double>(share);
  });
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

DriveLimit MeasureDrive(const std::string& container, int64_t record_bytes, int32_t readers) {
  const std::vector<Bank> banks = OpenBanks(container, record_bytes);
  if (banks.empty() || record_bytes <= 0) return {};
  std::vector<Memory> records;
  std::vector<std::minstd_rand> random;
  for (int32_t reader = 0; reader < readers; ++reader) {
    records.push_back(Allocate(record_bytes));
    random.emplace_back(reader + 1);
  }
  DriveLimit limit;
  limit.direct = true;
  limit.bytes_s = Rate(readers, kSeconds, [&](int32_t reader) {
    auto& draw = random[static_cast<size_t>(reader)];
    const Bank& bank = banks[draw() % banks.size()];
    const int64_t record = static_cast<int64_t>(draw()) % (bank.bytes / record_bytes);
    return bank.Read(records[static_cast<size_t>(reader)].get(), record_bytes,
                     record * record_bytes);
  });
  for (const Bank& bank : banks) {
    if (bank.direct) continue;
    limit.direct = false;
    limit.refusal = bank.refusal;
  }
  return limit;
}

}  // namespace waste_cli
