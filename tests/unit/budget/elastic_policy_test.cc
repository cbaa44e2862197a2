// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <vector>

#include "budget/elastic_policy.h"

namespace waste {
namespace {

constexpr PressureLevel kNone = PressureLevel::kNone;
constexpr PressureLevel kTight = PressureLevel::kTight;
constexpr PressureLevel kSome = PressureLevel::kSome;
constexpr PressureLevel kCritical = PressureLevel::kCritical;

// What a cache of 1600 bytes may hold, report by report. Nothing else limits it.
struct Report {
  int64_t at_ms;
  PressureLevel level;
  int64_t allowed_bytes;
};

void Check(const std::vector<Report>& reports) {
  ElasticPolicy policy(1600);
  int64_t held = 1600;
  for (const Report& report : reports) {
    BOOST_TEST_CONTEXT("at " << report.at_ms << " ms") {
      held = policy.Update(report.level, report.at_ms * 1000, held);
      BOOST_TEST(held == report.allowed_bytes);
      BOOST_TEST(policy.limits() == (held < 1600));
    }
  }
}

BOOST_AUTO_TEST_SUITE(elastic_policy)

BOOST_AUTO_TEST_CASE(without_pressure_the_cache_is_whole) {
  Check({{0, kNone, 1600}, {100, kTight, 1600}, {99'000, kNone, 1600}});
}

BOOST_AUTO_TEST_CASE(critical_pressure_takes_all_of_it_at_once) {
  Check({{0, kNone, 1600}, {1, kCritical, 0}, {2, kCritical, 0}, {3, kSome, 0}});
}

BOOST_AUTO_TEST_CASE(some_pressure_takes_half_of_the_rest_five_times_a_second) {
  Check({{0, kSome, 800},
         {100, kSome, 800},
         {199, kSome, 800},
         {200, kSome, 400},
         {399, kSome, 400},
         {400, kSome, 200},
         {600, kSome, 100},
         {610, kCritical, 0}});
}

BOOST_AUTO_TEST_CASE(pressure_that_flickers_takes_no_faster) {
  Check({{0, kSome, 800},
         {50, kNone, 800},
         {100, kSome, 800},
         {150, kTight, 800},
         {260, kSome, 400}});
}

BOOST_AUTO_TEST_CASE(it_stays_small_while_pressure_lasts) {
  Check({{0, kCritical, 0},
         {4'900, kSome, 0},
         {9'000, kSome, 0},
         {13'000, kNone, 0},
         {13'999, kNone, 0},
         {14'000, kNone, 101}});
}

BOOST_AUTO_TEST_CASE(it_grows_by_a_sixteenth_a_second) {
  std::vector<Report> reports = {{0, kCritical, 0}};
  for (int64_t second = 5; second < 20; ++second) {
    const int64_t allowed = (second - 4) * 101;
    reports.push_back({second * 1000, kNone, allowed});
    reports.push_back({second * 1000 + 999, kNone, allowed});
  }
  reports.push_back({20'000, kNone, 1600});
  reports.push_back({21'000, kNone, 1600});
  Check(reports);
}

BOOST_AUTO_TEST_CASE(a_gap_between_reports_is_not_made_up_for) {
  Check({{0, kCritical, 0}, {60'000, kNone, 101}, {60'100, kNone, 101}, {61'000, kNone, 202}});
}

BOOST_AUTO_TEST_CASE(tight_memory_stops_growth_but_takes_nothing) {
  Check({{0, kCritical, 0},
         {5'000, kNone, 101},
         {6'000, kTight, 101},
         {60'000, kTight, 101},
         {60'100, kNone, 202}});
}

BOOST_AUTO_TEST_CASE(new_pressure_takes_what_had_grown) {
  Check({{0, kCritical, 0},
         {5'000, kNone, 101},
         {6'000, kNone, 202},
         {6'100, kSome, 101},
         {11'099, kNone, 101},
         {11'100, kNone, 202}});
}

BOOST_AUTO_TEST_CASE(half_means_half_of_what_other_limits_left) {
  ElasticPolicy policy(1600);
  BOOST_TEST(policy.Update(kSome, 0, 200) == 100);
  BOOST_TEST(policy.Update(kSome, 200'000, 60) == 30);
  BOOST_TEST(policy.Update(kNone, 5'200'000, 30) == 131);  // towards the whole cache
}

BOOST_AUTO_TEST_CASE(the_smallest_cache_still_grows_back) {
  ElasticPolicy policy(1);
  BOOST_TEST(policy.Update(kCritical, 0, 1) == 0);
  BOOST_TEST(policy.Update(kNone, 5'000'000, 0) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
