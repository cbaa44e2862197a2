// SPDX-License-Identifier: Apache-2.0
//
// Drives that are simulated, with a clock of their own: a drive serves its reads one after another,
// or all of them at once with a share of its speed each. Nothing here waits.

#include "container/drive_set.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>

namespace waste {
namespace {

constexpr int64_t kBytes = 1'000'000;

enum class Service { kInTurn, kShared };

// Reads on drives of the given bytes per ns, `lanes` at once.
class Simulation {
 public:
  Simulation(std::vector<double> speeds, int64_t lanes, Service service = Service::kInTurn)
      : set(static_cast<int32_t>(speeds.size())),
        speeds_(std::move(speeds)),
        lanes_(lanes),
        service_(service) {}

  void Read(int64_t count, DriveSet::Drives candidates = ~DriveSet::Drives{0}) {
    candidates &= (DriveSet::Drives{1} << speeds_.size()) - 1;
    for (int64_t i = 0; i < count; ++i) {
      if (std::ssize(reads_) == lanes_) Finish();
      const int32_t drive = set.Begin(candidates, kBytes, Clock());
      BOOST_REQUIRE((candidates >> drive & 1) == 1);
      reads_.push_back({drive, static_cast<double>(kBytes)});
    }
  }
  void Drain() {
    while (!reads_.empty()) Finish();
  }
  void Pause(double ns) {
    Drain();
    now_ns += ns;
  }
  void SetSpeed(int32_t drive, double bytes_per_ns) { speeds_[drive] = bytes_per_ns; }

  double Share(int32_t drive) const {
    int64_t all = 0;
    for (int32_t d = 0; d < set.count(); ++d) all += set.reads(d);
    return static_cast<double>(set.reads(drive)) / static_cast<double>(all);
  }

  DriveSet set;
  double now_ns = 1e9;

 private:
  struct Pending {
    int32_t drive;
    double left;  // bytes
  };

  int64_t Clock() const { return static_cast<int64_t>(now_ns); }

  // Bytes per ns that a pending read gets now.
  double SpeedOf(size_t number) const {
    const int32_t drive = reads_[number].drive;
    const auto is_here = [&](const Pending& read) { return read.drive == drive; };
    if (service_ == Service::kShared)
      return speeds_[drive] /
             static_cast<double>(std::count_if(reads_.begin(), reads_.end(), is_here));
    const auto first = std::find_if(reads_.begin(), reads_.end(), is_here);
    return first - reads_.begin() == static_cast<int64_t>(number) ? speeds_[drive] : 0;
  }

  // Lets time pass until the next read ends.
  void Finish() {
    size_t next = 0;
    double wait_ns = std::numeric_limits<double>::infinity();
    std::vector<double> speeds;
    for (size_t i = 0; i < reads_.size(); ++i) {
      speeds.push_back(SpeedOf(i));
      if (speeds[i] == 0 || reads_[i].left / speeds[i] >= wait_ns) continue;
      wait_ns = reads_[i].left / speeds[i];
      next = i;
    }
    for (size_t i = 0; i < reads_.size(); ++i)
      reads_[i].left = std::max(0.0, reads_[i].left - wait_ns * speeds[i]);
    now_ns += wait_ns;
    set.End(reads_[next].drive, kBytes, Clock(), true);
    reads_.erase(reads_.begin() + static_cast<int64_t>(next));
  }

  std::vector<double> speeds_;
  const int64_t lanes_;
  const Service service_;
  std::vector<Pending> reads_;  // in the order they began
};

BOOST_AUTO_TEST_SUITE(drive_set)

BOOST_AUTO_TEST_CASE(bandwidth_is_measured_however_many_reads_run_at_once) {
  for (const Service service : {Service::kInTurn, Service::kShared}) {
    for (const int64_t lanes : {1, 2, 4, 8}) {
      Simulation one({3.5}, lanes, service);
      BOOST_TEST(one.set.bytes_per_s(0) == 0);
      one.Read(200);
      one.Drain();
      one.Pause(1e12);  // time without reads says nothing
      one.Read(1);
      one.Drain();
      BOOST_TEST(one.set.bytes_per_s(0) == 3.5e9, boost::test_tools::tolerance(0.15));
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_drives_share_equally) {
  for (const Service service : {Service::kInTurn, Service::kShared}) {
    Simulation drives({2, 2}, 4, service);
    drives.Read(1000);
    BOOST_TEST(drives.Share(0) == 0.5, boost::test_tools::tolerance(0.05));
  }
}

BOOST_AUTO_TEST_CASE(reads_are_spread_by_bandwidth_and_take_as_long_as_all_drives_need) {
  for (const Service service : {Service::kInTurn, Service::kShared}) {
    for (const double ratio : {1.5, 2.0, 3.0}) {
      Simulation drives({1, ratio}, 8, service);
      const double start_ns = drives.now_ns;
      drives.Read(2000);
      drives.Drain();
      BOOST_TEST(drives.Share(1) == ratio / (1 + ratio), boost::test_tools::tolerance(0.1));
      BOOST_TEST(drives.now_ns - start_ns == 2000.0 * kBytes / (1 + ratio),
                 boost::test_tools::tolerance(0.1));
    }
  }
}

BOOST_AUTO_TEST_CASE(one_read_at_a_time_goes_to_the_fastest) {
  Simulation drives({1, 3, 2}, 1);
  drives.Read(1000);
  BOOST_TEST(drives.Share(1) > 0.97);
  BOOST_TEST(drives.set.reads(0) > 0);  // each was tried
  BOOST_TEST(drives.set.reads(2) > 0);
}

BOOST_AUTO_TEST_CASE(a_much_slower_drive_costs_a_hundredth_of_the_time_at_most) {
  Simulation both({7, 0.15}, 4);
  both.Read(100);  // finding out is not counted
  both.Drain();
  const double start_ns = both.now_ns;
  both.Read(5000);
  both.Drain();
  BOOST_TEST(both.now_ns - start_ns < 1.03 * 5000 * kBytes / 7.0);
}

BOOST_AUTO_TEST_CASE(a_drive_that_was_slow_for_a_while_is_found_again) {
  Simulation drives({1, 1}, 4);
  drives.SetSpeed(1, 0.01);
  drives.Read(500);
  const int64_t before = drives.set.reads(1);
  drives.SetSpeed(1, 1);
  drives.Read(20'000);
  BOOST_TEST(drives.set.reads(1) - before > 2000);
}

BOOST_AUTO_TEST_CASE(only_candidates_are_taken) {
  Simulation drives({1, 5, 5}, 4);
  drives.Read(100, 0b001);
  drives.Read(100, 0b110);
  BOOST_TEST(drives.set.reads(0) == 100);
  BOOST_TEST(drives.Share(1) == 0.25, boost::test_tools::tolerance(0.2));
}

BOOST_AUTO_TEST_CASE(an_avoided_drive_is_taken_only_where_no_other_has_the_bank) {
  Simulation drives({1, 5}, 2);
  BOOST_TEST(drives.set.Avoid(1));
  BOOST_TEST(!drives.set.Avoid(1));
  drives.Read(50);
  BOOST_TEST(drives.set.reads(1) == 0);
  drives.Read(50, 0b10);
  BOOST_TEST(drives.set.reads(1) == 50);
  BOOST_TEST(drives.set.Avoid(0));
  drives.Read(10);
  BOOST_TEST(drives.set.reads(0) + drives.set.reads(1) == 110);
}

BOOST_AUTO_TEST_CASE(a_read_that_failed_measures_nothing) {
  DriveSet set(2);
  const int32_t drive = set.Begin(0b11, kBytes, 100);
  set.End(drive, kBytes, 101, false);
  BOOST_TEST(set.bytes_per_s(drive) == 0);
  // Threads may look at the clock in another order than they come here.
  set.Begin(0b01, kBytes, 200);
  set.End(0, kBytes, 150, true);
  BOOST_TEST(set.bytes_per_s(0) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
