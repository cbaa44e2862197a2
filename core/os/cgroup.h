// SPDX-License-Identifier: Apache-2.0
//
// What the control groups of Linux, v1 and v2, leave this process. Every group from its own up to
// the mounted root counts, since each limits all below it. What cannot be read (no cgroups, a group
// outside the mount) does not limit. Any thread.

#ifndef WASTE_CORE_OS_CGROUP_H_
#define WASTE_CORE_OS_CGROUP_H_

#include <cstdint>
#include <string>

namespace waste {

struct CgroupLimits {
  int64_t memory_bytes = INT64_MAX;  // still free under the tightest limit; never negative
  double cores = 1e9;                // the smallest CPU quota
};

// `root` stands before every path that is read: empty for the system, a folder for tests.
CgroupLimits ReadCgroupLimits(const std::string& root);

}  // namespace waste

#endif  // WASTE_CORE_OS_CGROUP_H_
