// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <string>

#include "os/cgroup.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

constexpr const char* kMountV2 =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kMountsV1 =
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/memory rw shared:11 master:2 - cgroup cgroup rw,memory\n";

// A machine's /proc and /sys, in a folder.
class FakeSystem {
 public:
  FakeSystem(const std::string& cgroup, const std::string& mountinfo) {
    Write("/proc/self/cgroup", cgroup);
    Write("/proc/self/mountinfo", mountinfo);
  }
  FakeSystem& Write(const std::string& path, const std::string& text) {
    folder_.Write(path.substr(1), text);
    return *this;
  }
  CgroupLimits Limits() const { return ReadCgroupLimits(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

BOOST_AUTO_TEST_SUITE(cgroup)

BOOST_AUTO_TEST_CASE(a_system_without_cgroups_has_no_limits) {
  const TemporaryFolder empty;
  const CgroupLimits limits = ReadCgroupLimits(empty.path());
  BOOST_TEST(limits.memory_bytes == INT64_MAX);
  BOOST_TEST(limits.cores >= 1e9);
}

BOOST_AUTO_TEST_CASE(v2_limit_less_usage_is_what_is_left) {
  FakeSystem system("0::/user/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/user/app/memory.max", "1000000\n")
      .Write("/sys/fs/cgroup/user/app/memory.current", "300000\n");
  BOOST_TEST(system.Limits().memory_bytes == 700'000);
}

BOOST_AUTO_TEST_CASE(file_cache_does_not_count_as_used) {
  FakeSystem system("0::/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/app/memory.max", "1000000\n")
      .Write("/sys/fs/cgroup/app/memory.current", "900000\n")
      .Write("/sys/fs/cgroup/app/memory.stat",
             "anon 200000\nfile 700000\nshmem 100000\ninactive_file 400000\nactive_file 200000\n");
  BOOST_TEST(system.Limits().memory_bytes == 700'000);
}

BOOST_AUTO_TEST_CASE(the_tightest_ancestor_decides) {
  FakeSystem system("0::/a/b/c\n", kMountV2);
  system.Write("/sys/fs/cgroup/a/b/c/memory.max", "max\n")
      .Write("/sys/fs/cgroup/a/b/memory.max", "9000\n")
      .Write("/sys/fs/cgroup/a/memory.max", "5000\n")
      .Write("/sys/fs/cgroup/a/memory.current", "1000\n")
      .Write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n")
      .Write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  BOOST_TEST(system.Limits().memory_bytes == 4000);
  BOOST_TEST(system.Limits().cores == 1.5);
  system.Write("/sys/fs/cgroup/a/b/c/memory.max", "2000\n");
  BOOST_TEST(system.Limits().memory_bytes == 2000);
}

BOOST_AUTO_TEST_CASE(memory_high_limits_like_memory_max) {
  FakeSystem system("0::/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/app/memory.max", "max\n")
      .Write("/sys/fs/cgroup/app/memory.high", "4096\n")
      .Write("/sys/fs/cgroup/app/memory.current", "96\n");
  BOOST_TEST(system.Limits().memory_bytes == 4000);
}

BOOST_AUTO_TEST_CASE(a_group_over_its_limit_leaves_nothing) {
  FakeSystem system("0::/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/app/memory.max", "1000\n")
      .Write("/sys/fs/cgroup/app/memory.current", "3000\n");
  BOOST_TEST(system.Limits().memory_bytes == 0);
}

BOOST_AUTO_TEST_CASE(v1_groups_limit_by_controller) {
  FakeSystem system("12:cpu,cpuacct:/cpugroup\n5:memory:/memgroup/inner\n1:name=systemd:/x\n0::/\n",
                    kMountsV1);
  system
      .Write("/sys/fs/cgroup/memory/memgroup/inner/memory.limit_in_bytes", "9223372036854771712\n")
      .Write("/sys/fs/cgroup/memory/memgroup/inner/memory.usage_in_bytes", "4096\n")
      .Write("/sys/fs/cgroup/memory/memgroup/memory.limit_in_bytes", "1000000\n")
      .Write("/sys/fs/cgroup/memory/memgroup/memory.usage_in_bytes", "600000\n")
      .Write("/sys/fs/cgroup/memory/memgroup/memory.stat",
             "cache 5\ninactive_file 7\ntotal_inactive_file 100000\ntotal_active_file 50000\n")
      .Write("/sys/fs/cgroup/cpu,cpuacct/cpugroup/cpu.cfs_quota_us", "250000\n")
      .Write("/sys/fs/cgroup/cpu,cpuacct/cpugroup/cpu.cfs_period_us", "100000\n")
      .Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
      .Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(system.Limits().memory_bytes == 550'000);
  BOOST_TEST(system.Limits().cores == 2.5);
}

BOOST_AUTO_TEST_CASE(a_container_that_sees_its_group_as_the_root_finds_it) {
  FakeSystem system("0::/docker/0123\n",
                    "29 23 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  system.Write("/sys/fs/cgroup/memory.max", "2000\n");
  BOOST_TEST(system.Limits().memory_bytes == 2000);
  FakeSystem inner("0::/docker/0123/job\n",
                   "29 23 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  inner.Write("/sys/fs/cgroup/job/memory.max", "1500\n")
      .Write("/sys/fs/cgroup/memory.max", "2000\n");
  BOOST_TEST(inner.Limits().memory_bytes == 1500);
  FakeSystem similar("0::/docker/01234\n",  // not below /docker/0123
                     "29 23 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  similar.Write("/sys/fs/cgroup4/memory.max", "1\n").Write("/sys/fs/cgroup/memory.max", "2000\n");
  BOOST_TEST(similar.Limits().memory_bytes == 2000);
}

BOOST_AUTO_TEST_CASE(a_group_that_cannot_be_seen_does_not_limit) {
  FakeSystem absent("0::/gone\n", kMountV2);
  BOOST_TEST(absent.Limits().memory_bytes == INT64_MAX);
  FakeSystem outside("0::/../other\n", kMountV2);
  outside.Write("/sys/fs/other/memory.max", "1\n");
  BOOST_TEST(outside.Limits().memory_bytes == INT64_MAX);
}

BOOST_AUTO_TEST_CASE(mount_points_may_hold_escaped_blanks) {
  FakeSystem system("0::/app\n", "29 23 0:26 / /odd\\040place rw - cgroup2 cgroup2 rw\n");
  system.Write("/odd place/app/memory.max", "77\n");
  BOOST_TEST(system.Limits().memory_bytes == 77);
}

BOOST_AUTO_TEST_CASE(nonsense_does_not_limit) {
  for (const char* text : {"", "max", "abc\n", "99999999999999999999999\n", "\n\n"}) {
    FakeSystem system("0::/app\nno colon\n:\n", std::string(kMountV2) + "short - line\n - \n-");
    system.Write("/sys/fs/cgroup/app/memory.max", text).Write("/sys/fs/cgroup/app/cpu.max", text);
    BOOST_TEST(system.Limits().memory_bytes == INT64_MAX);
    BOOST_TEST(system.Limits().cores >= 1e9);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
