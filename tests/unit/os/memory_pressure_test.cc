// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>

#include "os/memory_pressure.h"
#include "os/system.h"

namespace waste {
namespace {

// A precondition of test cases: the system says something about memory.
boost::test_tools::assertion_result HasSource(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(SystemMemoryPressure() != nullptr);
  result.message() << "this system reports no memory pressure";
  return result;
}

#if defined(__linux__)
int64_t OpenFiles() {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}
#endif

BOOST_AUTO_TEST_SUITE(memory_pressure, *boost::unit_test::precondition(HasSource))

BOOST_AUTO_TEST_CASE(a_wait_ends_in_time) {
  const auto pressure = SystemMemoryPressure();
  for (const int64_t timeout_ms : {0, 1, 30, 200}) {
    const int64_t start = MonotonicMicros();
    pressure->Wait(timeout_ms);
    BOOST_TEST(MonotonicMicros() - start < 10'000'000);
  }
}

BOOST_AUTO_TEST_CASE(a_source_that_samples_does_not_spin) {
  const auto pressure = SystemMemoryPressure();
  const int64_t start = MonotonicMicros();
  for (int i = 0; i < 5; ++i) pressure->Wait(40);
  BOOST_TEST(MonotonicMicros() - start >= 5 * 20'000);
}

BOOST_AUTO_TEST_CASE(stop_ends_waits_of_another_thread) {
  const auto pressure = SystemMemoryPressure();
  std::thread waiting([&] { pressure->Wait(60'000); });
  pressure->Stop();
  waiting.join();
  const int64_t start = MonotonicMicros();
  for (int i = 0; i < 100; ++i) pressure->Wait(60'000);
  BOOST_TEST(MonotonicMicros() - start < 10'000'000);
}

#if defined(__linux__)
BOOST_AUTO_TEST_CASE(it_keeps_no_file_open) {
  const int64_t before = OpenFiles();
  { const auto pressure = SystemMemoryPressure(); }
  BOOST_TEST(OpenFiles() == before);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
