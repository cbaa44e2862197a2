// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "os/fast_cpus.h"
#include "support/fake_system.h"

namespace waste {
namespace {

// A machine whose CPU n has files with the n-th numbers; none of a CPU with 0.
struct Machine {
  explicit Machine(const std::vector<int>& capacities, const std::vector<int>& frequencies = {}) {
    Write("cpu_capacity", capacities);
    Write("cpufreq/cpuinfo_max_freq", frequencies);
  }
  void Write(const std::string& name, const std::vector<int>& numbers) {
    for (size_t cpu = 0; cpu < numbers.size(); ++cpu)
      if (numbers[cpu] != 0)
        system.Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + name,
                     std::to_string(numbers[cpu]) + "\n");
  }
  std::string Fast(const std::string& cpus) const {
    return PrintCpuList(FastCpus(*ParseCpuList(cpus), system.root()));
  }

  FakeSystem system{"", ""};
};

BOOST_AUTO_TEST_SUITE(fast_cpus)

BOOST_AUTO_TEST_CASE(those_below_seven_tenths_of_the_best_are_slow) {
  const Machine phone({400, 400, 700, 699, 1000});
  BOOST_TEST(phone.Fast("0-4") == "2,4");
}

BOOST_AUTO_TEST_CASE(the_best_of_those_asked_for_counts) {
  const Machine phone({400, 400, 800, 1024});
  BOOST_TEST(phone.Fast("0-1") == "0-1");
  BOOST_TEST(phone.Fast("0-2") == "2");
  BOOST_TEST(phone.Fast("1") == "1");
}

BOOST_AUTO_TEST_CASE(the_highest_frequency_counts_where_no_capacity_is_told) {
  const Machine laptop({}, {5'000'000, 4'900'000, 3'400'000, 3'400'000});
  BOOST_TEST(laptop.Fast("0-3") == "0-1");
  const Machine told_in_part({1024, 0, 400, 400}, {5'000'000, 4'900'000, 4'000'000, 3'400'000});
  BOOST_TEST(told_in_part.Fast("0-3") == "0-2");
  BOOST_TEST(told_in_part.Fast("0,2") == "0");
}

BOOST_AUTO_TEST_CASE(capacity_is_believed_before_frequency) {
  const Machine board({1024, 400}, {2'000'000, 2'000'000});
  BOOST_TEST(board.Fast("0-1") == "0");
}

BOOST_AUTO_TEST_CASE(all_are_fast_where_they_are_alike_or_nothing_is_told) {
  BOOST_TEST(Machine({1024, 1024, 1024}).Fast("0-2") == "0-2");
  BOOST_TEST(Machine({}).Fast("0-3,8") == "0-3,8");
  BOOST_TEST(Machine({}, {5'000'000, 0, 1'000'000}).Fast("0-2") == "0-2");
  BOOST_TEST(FastCpus(CpuSet(), "").empty());
}

BOOST_AUTO_TEST_CASE(files_that_make_no_sense_tell_nothing) {
  for (const char* text : {"", "fast\n", "-400\n", "99999999999999999999\n"}) {
    Machine machine({1024, 400});
    machine.system.Write("/sys/devices/system/cpu/cpu1/cpu_capacity", text);
    BOOST_TEST(machine.Fast("0-1") == "0-1");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
