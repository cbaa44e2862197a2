// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "engine/team.h"
#include "os/system.h"
#include "support/fake_system.h"
#include "support/granted_cpus.h"

namespace waste {
namespace {

using waste_test::CpusOfThisThread;

OpenOptions Asking(int32_t threads, const std::string& cpu_list) {
  OpenOptions options;
  options.threads = threads;
  options.cpu_list = cpu_list;
  return options;
}

std::string RefusalOf(const std::string& cpu_list) {
  const auto team = ChooseTeam(Asking(0, cpu_list));
  BOOST_REQUIRE(!team.ok());
  BOOST_TEST((team.status().code() == Code::kArgument));
  return team.status().message();
}

// All CPUs of this process are alike but for its first, which is slow.
struct MachineWithASlowCpu : FakeSystem {
  MachineWithASlowCpu() : FakeSystem("", "") {
    const std::vector<int> cpus = CpusOfThisThread();
    for (const int cpu : cpus)
      Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpu_capacity",
            cpu == cpus.front() ? "400\n" : "1024\n");
  }
};

BOOST_AUTO_TEST_SUITE(team)

BOOST_AUTO_TEST_CASE(a_list_gives_a_thread_to_each_of_its_cpus,
                     *boost::unit_test::precondition(waste_test::HasTwoCpus)) {
  const std::vector<int> cpus = CpusOfThisThread();
  const std::string one = std::to_string(cpus.back());
  const std::string two = std::to_string(cpus.front()) + "," + one;
  BOOST_TEST(ChooseTeam(Asking(0, one))->threads == 1);
  BOOST_TEST(PrintCpuList(ChooseTeam(Asking(0, one))->cpus) == one);
  BOOST_TEST(ChooseTeam(Asking(0, two))->threads == 2);
  BOOST_TEST((ChooseTeam(Asking(0, two))->cpus == *ParseCpuList(two)));
}

BOOST_AUTO_TEST_CASE(threads_may_be_more_than_the_cpus_of_a_list,
                     *boost::unit_test::precondition(waste_test::HasOneCpu)) {
  const std::string one = std::to_string(CpusOfThisThread().front());
  const auto team = ChooseTeam(Asking(5, one));
  BOOST_REQUIRE(team.ok());
  BOOST_TEST(team->threads == 5);
  BOOST_TEST(PrintCpuList(team->cpus) == one);
}

BOOST_AUTO_TEST_CASE(a_bad_list_is_refused_with_the_cpus_that_may_be_used,
                     *boost::unit_test::precondition(waste_test::HasOneCpu)) {
  CpuSet granted;
  for (const int cpu : CpusOfThisThread()) granted.Add(cpu);
  const std::string usable = "this process may use the CPUs " + PrintCpuList(granted);
  BOOST_TEST(RefusalOf("x") ==
             "cpu_list: item 1, \"x\", is no CPU like 3 and no range like 0-3; " + usable);
  const std::string first = std::to_string(CpusOfThisThread().front());
  BOOST_TEST(RefusalOf(first + ",8190-8191") == "cpu_list: " + usable + ", and not 8190-8191");
}

BOOST_AUTO_TEST_CASE(slow_cpus_are_left_out_unless_threads_are_asked_for,
                     *boost::unit_test::precondition(waste_test::HasTwoCpus)) {
  const MachineWithASlowCpu system;
  std::vector<int> fast = CpusOfThisThread();
  const std::string slow = std::to_string(fast.front());
  fast.erase(fast.begin());
  const auto automatic = ChooseTeam(Asking(0, ""), system.root());
  BOOST_REQUIRE(automatic.ok());
  BOOST_TEST(automatic->cpus.count() == static_cast<int32_t>(fast.size()));
  for (const int cpu : fast) BOOST_TEST(automatic->cpus.Has(cpu));
  BOOST_TEST(automatic->threads <= static_cast<int32_t>(fast.size()));
  BOOST_TEST(automatic->threads >= 1);
  BOOST_TEST(ChooseTeam(Asking(2, ""), system.root())->cpus.empty());
  BOOST_TEST(PrintCpuList(ChooseTeam(Asking(0, slow), system.root())->cpus) == slow);
}

BOOST_AUTO_TEST_CASE(on_a_machine_of_equal_cpus_nothing_is_kept_anywhere) {
  const FakeSystem system("", "");  // tells nothing
  const auto team = ChooseTeam(Asking(0, ""), system.root());
  BOOST_REQUIRE(team.ok());
  BOOST_TEST(team->cpus.empty());
  BOOST_TEST(team->threads == GrantedCores());
}

BOOST_AUTO_TEST_CASE(threads_out_of_range_are_refused) {
  for (const int32_t threads : {-1, 1025, INT32_MAX})
    BOOST_TEST((ChooseTeam(Asking(threads, "")).status().code() == Code::kArgument));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
