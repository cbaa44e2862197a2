// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>

#include "os/memory_pressure.h"
#include "os/pressure_sampler.h"
#include "support/fake_system.h"

namespace waste {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

std::string Meminfo(int64_t total_kib, int64_t available_kib) {
  return "MemTotal:       " + std::to_string(total_kib) +
         " kB\nMemFree:   1 kB\nMemAvailable:  " + std::to_string(available_kib) + " kB\n";
}

std::string Stalls(int64_t some_us, int64_t full_us) {
  return "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(some_us) +
         "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(full_us) + "\n";
}

// A machine with room to spare, in one group of v2 with a limit of 1000 MiB.
class Machine {
 public:
  Machine() : system_("0::/app\n", kMountV2) {
    Available(50);
    Group("memory.max", std::to_string(1000 * kMiB));
    Used(500);
  }
  Machine& Available(int64_t percent) {
    system_.Write("/proc/meminfo", Meminfo(16'000'000, 160'000 * percent));
    return *this;
  }
  Machine& Used(int64_t mebibytes) {
    return Group("memory.current", std::to_string(mebibytes * kMiB));
  }
  Machine& Group(const std::string& file, const std::string& text) {
    system_.Write("/sys/fs/cgroup/app/" + file, text + "\n");
    return *this;
  }
  Machine& MachineStalls(int64_t some_us, int64_t full_us) {
    system_.Write("/proc/pressure/memory", Stalls(some_us, full_us));
    return *this;
  }
  Machine& OwnStalls(int64_t some_us, int64_t full_us) {
    return Group("cgroup.type", "domain").Group("memory.pressure", Stalls(some_us, full_us));
  }
  PressureSampler Sampler() const { return PressureSampler(system_.root()); }

 private:
  FakeSystem system_;
};

void Expect(PressureLevel got, PressureLevel expected) {
  BOOST_TEST(static_cast<int32_t>(got) == static_cast<int32_t>(expected));
}

BOOST_AUTO_TEST_SUITE(pressure_sampler)

BOOST_AUTO_TEST_CASE(room_is_a_share_of_small_limits_and_an_amount_of_large_ones) {
  Expect(LevelOfRoom(3200, 400), PressureLevel::kNone);
  Expect(LevelOfRoom(3200, 399), PressureLevel::kTight);
  Expect(LevelOfRoom(3200, 199), PressureLevel::kSome);
  Expect(LevelOfRoom(3200, 99), PressureLevel::kCritical);
  Expect(LevelOfRoom(3200, -5), PressureLevel::kCritical);
  Expect(LevelOfRoom(1000 * kGiB, 2 * kGiB), PressureLevel::kNone);
  Expect(LevelOfRoom(1000 * kGiB, 2 * kGiB - 1), PressureLevel::kTight);
  Expect(LevelOfRoom(1000 * kGiB, kGiB - 1), PressureLevel::kSome);
  Expect(LevelOfRoom(1000 * kGiB, kGiB / 2 - 1), PressureLevel::kCritical);
}

BOOST_AUTO_TEST_CASE(a_machine_that_tells_nothing_never_reports) {
  const TemporaryFolder empty;
  PressureSampler sampler(empty.path());
  BOOST_TEST(!sampler.can_report());
  Expect(sampler.Sample(0), PressureLevel::kNone);
}

BOOST_AUTO_TEST_CASE(what_the_machine_has_available_decides) {
  Machine machine;
  PressureSampler sampler = machine.Sampler();
  BOOST_TEST(sampler.can_report());
  Expect(sampler.Sample(0), PressureLevel::kNone);
  Expect(machine.Available(10).Sampler().Sample(0), PressureLevel::kTight);
  machine.Available(5);
  Expect(sampler.Sample(1), PressureLevel::kSome);
  machine.Available(2);
  Expect(sampler.Sample(2), PressureLevel::kCritical);
  machine.Available(40);
  Expect(sampler.Sample(3), PressureLevel::kNone);
}

BOOST_AUTO_TEST_CASE(what_a_group_leaves_decides) {
  Machine machine;
  PressureSampler sampler = machine.Sampler();
  machine.Used(880);
  Expect(sampler.Sample(0), PressureLevel::kTight);
  machine.Used(950);
  Expect(sampler.Sample(1), PressureLevel::kSome);
  machine.Used(980);
  Expect(sampler.Sample(2), PressureLevel::kCritical);
  machine.Group("memory.stat", "inactive_file 104857600\nactive_file 209715200\nanon 5");
  Expect(sampler.Sample(3), PressureLevel::kNone);  // 300 MiB of it are file cache
  machine.Group("memory.stat", "inactive_file 0").Group("memory.max", "max");
  Expect(sampler.Sample(4), PressureLevel::kNone);
  machine.Group("memory.high", std::to_string(1000 * kMiB));
  Expect(sampler.Sample(5), PressureLevel::kCritical);
}

BOOST_AUTO_TEST_CASE(so_does_a_group_of_v1_above_the_own_one) {
  FakeSystem system("5:memory:/job/step\n", kMountsV1);
  const std::string job = "/sys/fs/cgroup/memory/job/";
  system.Write(job + "step/memory.limit_in_bytes", "9223372036854771712\n")
      .Write(job + "step/memory.usage_in_bytes", "1000\n")
      .Write(job + "memory.limit_in_bytes", std::to_string(1000 * kMiB))
      .Write(job + "memory.usage_in_bytes", std::to_string(950 * kMiB))
      .Write(job + "memory.failcnt", "12\n");
  PressureSampler sampler(system.root());
  Expect(sampler.Sample(0), PressureLevel::kSome);
  system.Write(job + "memory.failcnt", "13\n");
  Expect(sampler.Sample(1), PressureLevel::kCritical);
  Expect(sampler.Sample(2), PressureLevel::kSome);
  system.Write(job + "memory.stat",
               "inactive_file 999999999\ntotal_inactive_file " + std::to_string(200 * kMiB));
  Expect(sampler.Sample(3), PressureLevel::kNone);
}

BOOST_AUTO_TEST_CASE(hits_at_a_limit_count_when_little_is_left) {
  Machine machine;
  machine.Group("memory.events.local", "high 0\nmax 1\noom 0\noom_kill 0");
  PressureSampler sampler = machine.Sampler();
  BOOST_TEST(sampler.event_paths().size() == 1u);
  machine.Group("memory.events.local", "high 0\nmax 900\noom 0\noom_kill 0");
  Expect(sampler.Sample(0), PressureLevel::kNone);  // file cache fills every group to its limit
  machine.Used(950);
  Expect(sampler.Sample(1), PressureLevel::kSome);
  machine.Group("memory.events.local", "high 1\nmax 900\noom 0\noom_kill 0");
  Expect(sampler.Sample(2), PressureLevel::kCritical);
  Expect(sampler.Sample(3), PressureLevel::kSome);
}

BOOST_AUTO_TEST_CASE(memory_that_ran_out_between_samples_is_critical) {
  Machine machine;
  machine.Group("memory.events", "max 1\noom 3");
  PressureSampler sampler = machine.Sampler();
  Expect(sampler.Sample(0), PressureLevel::kNone);
  machine.Group("memory.events", "max 1\noom 4");
  Expect(sampler.Sample(1), PressureLevel::kCritical);
  Expect(sampler.Sample(2), PressureLevel::kNone);
}

BOOST_AUTO_TEST_CASE(stalls_within_the_last_second_count) {
  Machine machine;
  machine.OwnStalls(5'000'000, 1'000'000).Available(20);
  PressureSampler sampler = machine.Sampler();
  Expect(sampler.Sample(0), PressureLevel::kNone);  // what was before does not count
  machine.OwnStalls(5'149'000, 1'000'000);
  Expect(sampler.Sample(100'000), PressureLevel::kNone);
  machine.OwnStalls(5'150'000, 1'000'000);
  Expect(sampler.Sample(200'000), PressureLevel::kSome);
  machine.OwnStalls(5'600'000, 1'400'000);
  Expect(sampler.Sample(300'000), PressureLevel::kCritical);
  for (int64_t at_us = 400'000; at_us <= 1'200'000; at_us += 100'000) sampler.Sample(at_us);
  Expect(sampler.Sample(1'300'000), PressureLevel::kNone);
}

BOOST_AUTO_TEST_CASE(stalls_are_spread_over_a_gap_between_samples) {
  Machine machine;
  machine.MachineStalls(0, 0).Available(20);
  PressureSampler sampler = machine.Sampler();
  Expect(sampler.Sample(0), PressureLevel::kNone);
  machine.MachineStalls(450'000, 0);
  Expect(sampler.Sample(10'000'000), PressureLevel::kNone);
  machine.MachineStalls(2'250'000, 0);
  Expect(sampler.Sample(20'000'000), PressureLevel::kSome);
}

BOOST_AUTO_TEST_CASE(stalls_do_not_count_where_there_is_plenty_of_room) {
  Machine machine;
  machine.OwnStalls(0, 0).MachineStalls(0, 0);
  PressureSampler sampler = machine.Sampler();
  Expect(sampler.Sample(0), PressureLevel::kNone);
  machine.OwnStalls(900'000, 900'000).MachineStalls(900'000, 900'000);
  Expect(sampler.Sample(100'000), PressureLevel::kNone);
  machine.Used(800);  // the group's own stalls
  Expect(sampler.Sample(200'000), PressureLevel::kCritical);
  machine.OwnStalls(0, 0);
  Expect(sampler.Sample(300'000), PressureLevel::kNone);  // the machine's are a neighbour's
}

BOOST_AUTO_TEST_CASE(the_stalls_of_the_root_group_are_the_machines) {
  FakeSystem system("0::/\n", kMountV2);
  system.Write("/sys/fs/cgroup/memory.pressure", Stalls(0, 0));
  BOOST_TEST(PressureSampler(system.root()).stall_paths().empty());
}

BOOST_AUTO_TEST_CASE(nonsense_is_no_pressure) {
  for (const char* text :
       {"", "max", "some\n", "some total=\nfull total=x\n", "MemTotal: x kB\n"}) {
    Machine machine;
    machine.OwnStalls(0, 0);
    PressureSampler sampler = machine.Sampler();
    for (const char* file :
         {"memory.pressure", "memory.max", "memory.current", "memory.stat", "memory.events"})
      machine.Group(file, text);
    Expect(sampler.Sample(0), PressureLevel::kNone);
    Expect(sampler.Sample(100'000), PressureLevel::kNone);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
