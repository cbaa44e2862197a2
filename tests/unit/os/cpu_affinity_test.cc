// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <thread>
#include <vector>

#include "os/cpu_affinity.h"
#include "support/granted_cpus.h"

namespace waste {
namespace {

using waste_test::CpusOfThisThread;

CpuSet SetOf(const std::vector<int>& cpus) {
  CpuSet set;
  for (const int cpu : cpus) set.Add(cpu);
  return set;
}

BOOST_AUTO_TEST_SUITE(cpu_affinity)

BOOST_AUTO_TEST_CASE(granted_cpus_are_those_of_this_thread) {
  BOOST_TEST((GrantedCpus() == SetOf(CpusOfThisThread())));
}

BOOST_AUTO_TEST_CASE(a_thread_is_kept_there_and_put_back,
                     *boost::unit_test::precondition(waste_test::HasTwoCpus)) {
  const std::vector<int> before = CpusOfThisThread();
  for (const int cpu : {before.front(), before.back()}) {
    const OnCpus on_cpus(SetOf({cpu}));
    BOOST_TEST(on_cpus.ok());
    BOOST_TEST(CpusOfThisThread() == std::vector<int>{cpu}, boost::test_tools::per_element());
    {
      const OnCpus within(SetOf({before.back()}));
      BOOST_TEST(CpusOfThisThread() == std::vector<int>{before.back()},
                 boost::test_tools::per_element());
    }
    BOOST_TEST(CpusOfThisThread() == std::vector<int>{cpu}, boost::test_tools::per_element());
  }
  BOOST_TEST(CpusOfThisThread() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_exception_puts_it_back_too,
                     *boost::unit_test::precondition(waste_test::HasTwoCpus)) {
  const std::vector<int> before = CpusOfThisThread();
  try {
    const OnCpus on_cpus(SetOf({before.back()}));
    throw std::runtime_error("a step");
  } catch (const std::runtime_error&) {
  }
  BOOST_TEST(CpusOfThisThread() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_empty_set_changes_nothing_and_an_impossible_one_is_refused) {
  const std::vector<int> before = CpusOfThisThread();
  BOOST_TEST(OnCpus(CpuSet()).ok());
  const OnCpus on_cpus(SetOf({CpuSet::kMaxCpus - 1}));
  BOOST_TEST(!on_cpus.ok());
  BOOST_TEST(CpusOfThisThread() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_thread_started_meanwhile_stays_there,
                     *boost::unit_test::precondition(waste_test::HasTwoCpus)) {
  const int last = CpusOfThisThread().back();
  std::vector<int> inherited;
  {
    const OnCpus on_cpus(SetOf({last}));
    std::thread([&] { inherited = CpusOfThisThread(); }).join();
  }
  BOOST_TEST(inherited == std::vector<int>{last}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
