// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <string>

#include "os/cgroup.h"
#include "support/fake_system.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

CgroupLimits Limits(const FakeSystem& system) { return ReadCgroupLimits(system.root()); }

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
  BOOST_TEST(Limits(system).memory_bytes == 700'000);
}

BOOST_AUTO_TEST_CASE(file_cache_does_not_count_as_used) {
  FakeSystem system("0::/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/app/memory.max", "1000000\n")
      .Write("/sys/fs/cgroup/app/memory.current", "900000\n")
      .Write("/sys/fs/cgroup/app/memory.stat",
             "anon 200000\nfile 700000\nshmem 100000\ninactive_file 400000\nactive_file 200000\n");
  BOOST_TEST(Limits(system).memory_bytes == 700'000);
}

BOOST_AUTO_TEST_CASE(the_tightest_ancestor_decides) {
  FakeSystem system("0::/a/b/c\n", kMountV2);
  system.Write("/sys/fs/cgroup/a/b/c/memory.max", "max\n")
      .Write("/sys/fs/cgroup/a/b/memory.max", "9000\n")
      .Write("/sys/fs/cgroup/a/memory.max", "5000\n")
      .Write("/sys/fs/cgroup/a/memory.current", "1000\n")
      .Write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n")
      .Write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  BOOST_TEST(Limits(system).memory_bytes == 4000);
  BOOST_TEST(Limits(system).cores == 1.5);
  system.Write("/sys/fs/cgroup/a/b/c/memory.max", "2000\n");
  BOOST_TEST(Limits(system).memory_bytes == 2000);
}

BOOST_AUTO_TEST_CASE(memory_high_limits_like_memory_max) {
  FakeSystem system("0::/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/app/memory.max", "max\n")
      .Write("/sys/fs/cgroup/app/memory.high", "4096\n")
      .Write("/sys/fs/cgroup/app/memory.current", "96\n");
  BOOST_TEST(Limits(system).memory_bytes == 4000);
}

BOOST_AUTO_TEST_CASE(a_group_over_its_limit_leaves_nothing) {
  FakeSystem system("0::/app\n", kMountV2);
  system.Write("/sys/fs/cgroup/app/memory.max", "1000\n")
      .Write("/sys/fs/cgroup/app/memory.current", "3000\n");
  BOOST_TEST(Limits(system).memory_bytes == 0);
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
  BOOST_TEST(Limits(system).memory_bytes == 550'000);
  BOOST_TEST(Limits(system).cores == 2.5);
}

BOOST_AUTO_TEST_CASE(a_container_that_sees_its_group_as_the_root_finds_it) {
  FakeSystem system("0::/docker/0123\n",
                    "29 23 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  system.Write("/sys/fs/cgroup/memory.max", "2000\n");
  BOOST_TEST(Limits(system).memory_bytes == 2000);
  FakeSystem inner("0::/docker/0123/job\n",
                   "29 23 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  inner.Write("/sys/fs/cgroup/job/memory.max", "1500\n")
      .Write("/sys/fs/cgroup/memory.max", "2000\n");
  BOOST_TEST(Limits(inner).memory_bytes == 1500);
  FakeSystem similar("0::/docker/01234\n",  // not below /docker/0123
                     "29 23 0:26 /docker/0123 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  similar.Write("/sys/fs/cgroup4/memory.max", "1\n").Write("/sys/fs/cgroup/memory.max", "2000\n");
  BOOST_TEST(Limits(similar).memory_bytes == 2000);
}

BOOST_AUTO_TEST_CASE(a_group_that_cannot_be_seen_does_not_limit) {
  FakeSystem absent("0::/gone\n", kMountV2);
  BOOST_TEST(Limits(absent).memory_bytes == INT64_MAX);
  FakeSystem outside("0::/../other\n", kMountV2);
  outside.Write("/sys/fs/other/memory.max", "1\n");
  BOOST_TEST(Limits(outside).memory_bytes == INT64_MAX);
}

BOOST_AUTO_TEST_CASE(mount_points_may_hold_escaped_blanks) {
  FakeSystem system("0::/app\n", "29 23 0:26 / /odd\\040place rw - cgroup2 cgroup2 rw\n");
  system.Write("/odd place/app/memory.max", "77\n");
  BOOST_TEST(Limits(system).memory_bytes == 77);
}

BOOST_AUTO_TEST_CASE(nonsense_does_not_limit) {
  for (const char* text : {"", "max", "abc\n", "99999999999999999999999\n", "\n\n"}) {
    FakeSystem system("0::/app\nno colon\n:\n", std::string(kMountV2) + "short - line\n - \n-");
    system.Write("/sys/fs/cgroup/app/memory.max", text).Write("/sys/fs/cgroup/app/cpu.max", text);
    BOOST_TEST(Limits(system).memory_bytes == INT64_MAX);
    BOOST_TEST(Limits(system).cores >= 1e9);
  }
}

BOOST_AUTO_TEST_CASE(memory_groups_are_listed_from_the_own_one_upwards) {
  FakeSystem system("5:memory:/a/b\n4:cpu,cpuacct:/c\n0::/\n", kMountsV1);
  const auto groups = ListMemoryGroups(system.root());
  BOOST_REQUIRE(groups.size() == 3);
  BOOST_TEST(groups[0].folder == system.root() + "/sys/fs/cgroup/memory/a/b");
  BOOST_TEST(groups[1].folder == system.root() + "/sys/fs/cgroup/memory/a");
  BOOST_TEST(groups[2].folder == system.root() + "/sys/fs/cgroup/memory");
  BOOST_TEST((groups[0].own && !groups[1].own && !groups[2].own));
}

BOOST_AUTO_TEST_CASE(hits_at_a_limit_are_counted_without_those_of_groups_below) {
  FakeSystem system("0::/app\n", kMountV2);
  const MemoryGroup group = ListMemoryGroups(system.root()).at(0);
  BOOST_TEST(ReadMemoryHits(group).limit_hits == 0);
  BOOST_TEST(MemoryEventsPath(group) == "");
  system.Write("/sys/fs/cgroup/app/memory.events", "low 1\nhigh 20\nmax 30\noom 4\noom_kill 5\n");
  BOOST_TEST(ReadMemoryHits(group).limit_hits == 50);
  BOOST_TEST(ReadMemoryHits(group).ooms == 4);
  system.Write("/sys/fs/cgroup/app/memory.events.local", "low 0\nhigh 2\nmax 3\noom 1\n");
  BOOST_TEST(ReadMemoryHits(group).limit_hits == 5);
  BOOST_TEST(ReadMemoryHits(group).ooms == 1);
  FakeSystem v1("5:memory:/app\n", kMountsV1);
  v1.Write("/sys/fs/cgroup/memory/app/memory.failcnt", "7\n");
  BOOST_TEST(ReadMemoryHits(ListMemoryGroups(v1.root()).at(0)).limit_hits == 7);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
