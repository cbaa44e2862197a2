// SPDX-License-Identifier: Apache-2.0
//
// The CPUs that tests of affinity may use: two of those that this process was granted, as the
// system tells by calls of its own. A precondition for tests that need two; any thread. Linux only;
// elsewhere there are none.

#ifndef WASTE_TESTS_SUPPORT_GRANTED_CPUS_H_
#define WASTE_TESTS_SUPPORT_GRANTED_CPUS_H_

#include <boost/test/unit_test.hpp>

#if defined(__linux__)
#include <sched.h>
#endif

#include <string>
#include <vector>

namespace waste_test {

// In ascending order, for the calling thread; at most those that a cpu_set_t can tell.
inline std::vector<int> CpusOfThisThread() {
  std::vector<int> cpus;
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
#endif
  return cpus;
}

// Preconditions.
inline boost::test_tools::assertion_result HasCpus(size_t count) {
  boost::test_tools::assertion_result granted(CpusOfThisThread().size() >= count);
  granted.message() << "the system grants " << CpusOfThisThread().size() << " CPUs, and " << count
                    << " are needed";
  return granted;
}
inline boost::test_tools::assertion_result HasOneCpu(boost::unit_test::test_unit_id) {
  return HasCpus(1);
}
inline boost::test_tools::assertion_result HasTwoCpus(boost::unit_test::test_unit_id) {
  return HasCpus(2);
}

}  // namespace waste_test

#endif  // WASTE_TESTS_SUPPORT_GRANTED_CPUS_H_
