// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "stream/slot_table.h"

namespace waste {
namespace {

// Asks for one expert as the cache does. Returns whether it was there.
bool Use(SlotTable& table, int32_t expert) {
  int32_t slot = table.SlotOf(expert);
  const bool hit = slot != SlotTable::kNone;
  if (hit) {
    table.Lease(slot);
    table.Count(expert);
  } else {
    table.Count(expert);
    slot = table.Take();
    table.Fill(slot, expert);
  }
  table.Release(slot);
  return hit;
}

BOOST_AUTO_TEST_SUITE(slot_table)

BOOST_AUTO_TEST_CASE(empty_slots_are_taken_first) {
  SlotTable table(10, 3);
  Use(table, 4);
  Use(table, 5);
  Use(table, 6);
  for (const int32_t expert : {4, 5, 6}) BOOST_TEST(table.SlotOf(expert) != SlotTable::kNone);
}

BOOST_AUTO_TEST_CASE(an_expert_used_once_does_not_push_out_one_used_often) {
  SlotTable table(100, 2);  // one slot for the best, one that all others pass through
  for (int round = 0; round < 5; ++round) Use(table, 0);
  for (int32_t expert = 1; expert < 100; ++expert) BOOST_TEST(!Use(table, expert));
  BOOST_TEST(Use(table, 0));
}

BOOST_AUTO_TEST_CASE(counts_halve_in_half_a_life) {
  SlotTable table(2, 1);
  Use(table, 0);
  for (int step = 0; step < SlotTable::kHalfLife; ++step) table.BeginStep();
  BOOST_TEST(table.count_of(0) == 0.5, boost::test_tools::tolerance(1e-9));
  Use(table, 0);
  BOOST_TEST(table.count_of(0) == 1.5, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(what_was_used_long_ago_makes_room) {
  SlotTable table(10, 2);
  for (int round = 0; round < 5; ++round) Use(table, 0);
  for (int step = 0; step < 40; ++step) {
    table.BeginStep();
    Use(table, 1 + step % 2);
  }
  BOOST_TEST(table.SlotOf(0) == SlotTable::kNone);
}

BOOST_AUTO_TEST_CASE(counts_survive_a_million_steps) {
  SlotTable table(3, 2);
  for (int step = 0; step < 1'000'000; ++step) {
    table.BeginStep();
    Use(table, 0);
  }
  // The sum of a geometric series: a use each step, halved every kHalfLife of them.
  BOOST_TEST(table.count_of(0) == 1 / (1 - std::exp2(-1 / SlotTable::kHalfLife)),
             boost::test_tools::tolerance(1e-9));
  Use(table, 1);
  BOOST_TEST(!Use(table, 2));
  BOOST_TEST(Use(table, 0));
}

BOOST_AUTO_TEST_CASE(a_leased_slot_is_never_given_up) {
  SlotTable table(4, 2);
  Use(table, 0);
  Use(table, 1);
  table.Lease(table.SlotOf(0));
  Use(table, 2);
  Use(table, 3);
  BOOST_TEST(table.SlotOf(0) != SlotTable::kNone);
  table.Lease(table.SlotOf(3));
  BOOST_TEST(table.Take() == SlotTable::kNone);
  BOOST_TEST(table.idle() == 0);
}

// Against a search through all idle slots, under a random load.
BOOST_AUTO_TEST_CASE(the_lowest_count_is_given_up_every_time) {
  std::mt19937 random(5);
  SlotTable table(50, 16);
  std::vector<int32_t> held;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 4 == 0) table.BeginStep();
    const auto expert = static_cast<int32_t>(random() % 50 * (random() % 50) / 50);
    if (const int32_t slot = table.SlotOf(expert); slot != SlotTable::kNone) {
      table.Lease(slot);
      table.Count(expert);
      held.push_back(slot);
    } else if (table.idle() > 0) {
      table.Count(expert);
      double lowest = 1e300;
      bool some_empty = false;
      for (int32_t s = 0; s < 16; ++s) {
        if (table.leased(s)) continue;
        if (table.ExpertIn(s) == SlotTable::kNone)
          some_empty = true;
        else
          lowest = std::min(lowest, table.count_of(table.ExpertIn(s)));
      }
      std::vector<int32_t> before(16);
      for (int32_t s = 0; s < 16; ++s) before[s] = table.ExpertIn(s);
      const int32_t taken = table.Take();
      if (some_empty)
        BOOST_REQUIRE(before[taken] == SlotTable::kNone);
      else
        BOOST_REQUIRE_EQUAL(table.count_of(before[taken]), lowest);
      table.Fill(taken, expert);
      held.push_back(taken);
    }
    while (held.size() > random() % 20) {
      const size_t at = random() % held.size();
      table.Release(held[at]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
