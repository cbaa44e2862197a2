// SPDX-License-Identifier: Apache-2.0
//
// What the control groups of Linux, v1 and v2, leave this process. Every group from its own up to
// the mounted root counts, since each limits all below it. What cannot be read (no cgroups, a group
// outside the mount) does not limit. Any thread.

#ifndef WASTE_CORE_OS_CGROUP_H_
#define WASTE_CORE_OS_CGROUP_H_

#include <cstdint>
#include <string>
#include <vector>

namespace waste {

struct CgroupLimits {
  int64_t memory_bytes = INT64_MAX;  // still free under the tightest limit; never negative
  double cores = 1e9;                // the smallest CPU quota
};

// `root` stands before every path that is read: empty for the system, a folder for tests.
CgroupLimits ReadCgroupLimits(const std::string& root);

// A group that may limit the memory of this process.
struct MemoryGroup {
  std::string folder;
  bool v2 = false;
  bool own = false;  // the process's own, not one above it
};

// From the process's own group upwards, in each hierarchy.
std::vector<MemoryGroup> ListMemoryGroups(const std::string& root);

struct MemoryUse {
  int64_t limit_bytes = INT64_MAX;  // the hard one, or where throttling begins if that is less
  int64_t used_bytes = 0;           // file cache included
};

MemoryUse ReadMemoryUse(const MemoryGroup& group);
int64_t ReadFileCacheBytes(const MemoryGroup& group);  // the kernel drops it on demand

// Counts since the group was made. Not of the groups below, whose limits are their own.
struct MemoryHits {
  int64_t limit_hits = 0;  // memory was asked for at the limit
  int64_t ooms = 0;        // and could not be made available (v2)
};

MemoryHits ReadMemoryHits(const MemoryGroup& group);

// The file of those counts of a v2 group, for which poll() reports changes; empty without one.
std::string MemoryEventsPath(const MemoryGroup& group);

}  // namespace waste

#endif  // WASTE_CORE_OS_CGROUP_H_
