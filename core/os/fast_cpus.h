// SPDX-License-Identifier: Apache-2.0
//
// Which CPUs of a machine with fast and slow ones (big.LITTLE, performance and efficiency cores)
// are the fast ones, as the kernel's files tell: cpu_capacity where every CPU in question has it,
// else the highest frequency of each. A slow CPU in a team that shares out small work makes all
// others wait. Read afresh at each call. Any thread.

#ifndef WASTE_CORE_OS_FAST_CPUS_H_
#define WASTE_CORE_OS_FAST_CPUS_H_

#include <string>

#include "os/cpu_list.h"

namespace waste {

// Those of `cpus` that have at least 70 % of what the best of them has; all of them where nothing
// is told. `root` stands before every path that is read: empty for the system, a folder for tests.
CpuSet FastCpus(const CpuSet& cpus, const std::string& root);

}  // namespace waste

#endif  // WASTE_CORE_OS_FAST_CPUS_H_
