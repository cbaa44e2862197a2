// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <errno.h>
#if defined(__linux__)
#include <sched.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "base/aligned_buffer.h"
#include "os/system.h"
#include "os/system_error.h"

namespace waste {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

BOOST_AUTO_TEST_SUITE(system)

BOOST_AUTO_TEST_CASE(some_cores_and_some_memory_are_granted) {
  BOOST_TEST(GrantedCores() >= 1);
  BOOST_TEST(GrantedCores() <= static_cast<int32_t>(std::thread::hardware_concurrency()));
  BOOST_TEST(UsableMemoryBytes() > 0);
  BOOST_TEST(UsableMemoryBytes() < int64_t{1} << 50);
}

#if defined(__linux__)
BOOST_AUTO_TEST_CASE(affinity_limits_the_cores) {
  int32_t granted = 0;
  std::thread([&] {  // the affinity is this thread's
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    if (sched_setaffinity(0, sizeof one, &one) == 0) granted = GrantedCores();
  })
      .join();
  BOOST_TEST(granted == 1);
}
#endif

BOOST_AUTO_TEST_CASE(the_peak_counts_what_was_touched_and_stays) {
  const int64_t before = PeakResidentBytes();
  BOOST_TEST(before > kMiB);
  {
    auto buffer = AlignedBuffer::Allocate(64 * kMiB);
    BOOST_REQUIRE(buffer.ok());
    std::fill(buffer->bytes().begin(), buffer->bytes().end(), uint8_t{1});
    BOOST_TEST(buffer->bytes()[kMiB] == 1);
  }
  const int64_t after = PeakResidentBytes();
  BOOST_TEST(after >= before);
  BOOST_TEST(after > 64 * kMiB);
  BOOST_TEST(after < 64 * 1024 * kMiB);  // bytes, not another unit
}

BOOST_AUTO_TEST_CASE(discarded_pages_can_be_written_again) {
  auto buffer = AlignedBuffer::Allocate(4 * kMiB);
  BOOST_REQUIRE(buffer.ok());
  const auto bytes = buffer->bytes();
  std::fill(bytes.begin(), bytes.end(), uint8_t{7});
  DiscardPages(bytes.subspan(kMiB, kMiB));
  BOOST_TEST(bytes[kMiB - 1] == 7);
  BOOST_TEST(bytes[2 * kMiB] == 7);
#if defined(__linux__)
  BOOST_TEST(bytes[kMiB] == 0);  // a fresh page: the old one is gone
  BOOST_TEST(bytes[2 * kMiB - 1] == 0);
#endif
  std::fill(bytes.begin(), bytes.end(), uint8_t{9});
  BOOST_TEST(bytes[kMiB] == 9);
}

BOOST_AUTO_TEST_CASE(the_clock_counts_microseconds_forward) {
  const int64_t start = MonotonicMicros();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const int64_t passed = MonotonicMicros() - start;
  BOOST_TEST(passed >= 20'000);
  BOOST_TEST(passed < 20'000'000);
}

BOOST_AUTO_TEST_CASE(instruction_sets_are_consistent) {
  BOOST_TEST(CpuHas(Isa::kBest));
  BOOST_TEST(CpuHas(Isa::kScalar));
  BOOST_TEST((!CpuHas(Isa::kAvx512) || CpuHas(Isa::kAvx2)));
  BOOST_TEST(!(CpuHas(Isa::kNeon) && CpuHas(Isa::kAvx2)));
  BOOST_TEST(!CpuHas(static_cast<Isa>(99)));
}

BOOST_AUTO_TEST_CASE(each_instruction_set_has_its_name) {
  BOOST_TEST(IsaName(Isa::kBest) == std::string("best"));
  BOOST_TEST(IsaName(Isa::kScalar) == std::string("scalar"));
  BOOST_TEST(IsaName(Isa::kAvx2) == std::string("avx2"));
  BOOST_TEST(IsaName(Isa::kAvx512) == std::string("avx512"));
  BOOST_TEST(IsaName(Isa::kNeon) == std::string("neon"));
}

BOOST_AUTO_TEST_CASE(reasons_are_the_systems_words) {
#if defined(_WIN32)
  BOOST_TEST(SystemErrorText(ERROR_DISK_FULL) != SystemErrorText(ERROR_CRC));
  BOOST_TEST(!SystemErrorText(ERROR_CRC).ends_with('\n'));
#else
  BOOST_TEST(SystemErrorText(ENOENT) == "No such file or directory");
  BOOST_TEST(SystemErrorText(EIO) != SystemErrorText(ENOSPC));
#endif
  BOOST_TEST(!SystemErrorText(123456).empty());
  BOOST_TEST(SystemFailure("open", "x", 5).message() == "cannot open x: " + SystemErrorText(5));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
