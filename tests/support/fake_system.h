// SPDX-License-Identifier: Apache-2.0
//
// The files of a Linux machine under /proc and /sys, in a folder: for tests of what reads them with
// a root before the path. Two tables of mounts stand here: cgroups v2, and v1 as older systems have
// it. One thread.

#ifndef WASTE_TESTS_SUPPORT_FAKE_SYSTEM_H_
#define WASTE_TESTS_SUPPORT_FAKE_SYSTEM_H_

#include <string>

#include "support/temporary_folder.h"

namespace waste {

inline constexpr const char* kMountV2 =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
inline constexpr const char* kMountsV1 =
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/memory rw shared:11 master:2 - cgroup cgroup rw,memory\n";

class FakeSystem {
 public:
  // What /proc/self/cgroup and /proc/self/mountinfo hold.
  FakeSystem(const std::string& cgroup, const std::string& mountinfo) {
    Write("/proc/self/cgroup", cgroup);
    Write("/proc/self/mountinfo", mountinfo);
  }
  FakeSystem& Write(const std::string& path, const std::string& text) {
    folder_.Write(path.substr(1), text);
    return *this;
  }
  const std::string& root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_FAKE_SYSTEM_H_
