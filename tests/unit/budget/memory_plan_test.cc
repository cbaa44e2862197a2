// SPDX-License-Identifier: Apache-2.0

#include "budget/memory_plan.h"

#include <boost/test/unit_test.hpp>

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(memory_plan)

// Floor 100 + 20 + 10 + 4 * 5 = 150; a working set is 4 * 3 experts, 60 bytes; the bank 96 experts.
constexpr ModelSizes kSizes{.trunk_bytes = 100,
                            .state_bytes = 20,
                            .scratch_bytes = 10,
                            .record_bytes = 5,
                            .top_k = 4,
                            .moe_layers = 3,
                            .expert_total = 96};

BOOST_AUTO_TEST_CASE(floor_is_the_sum_of_its_parts_and_the_recommendation_two_working_sets_more) {
  const MemoryPlan plan = PlanMemory(kSizes, {.budget_bytes = 0, .usable_bytes = 1000});
  BOOST_TEST(plan.floor_bytes == 150);
  BOOST_TEST(plan.staging_bytes == 20);
  BOOST_TEST(plan.recommended_bytes == 270);
}

BOOST_AUTO_TEST_CASE(budgets_become_slots) {
  struct {
    int64_t asked, usable, budget, cache, limit;
    bool fits;
  } const kCases[] = {
      {0, 1000, 610, 460, 750, true},       // the whole bank fits 3/4 of 1000
      {0, 800, 270, 120, 600, true},        // it does not: two working sets
      {0, 300, 225, 75, 225, true},         // 3/4 of usable is less than that
      {0, 160, 150, 0, 150, true},          // never below the floor
      {0, 149, 150, 0, 150, false},         // the floor is more than there is
      {150, 1000, 150, 0, 150, true},       // exactly the floor
      {149, 1000, 149, 0, 149, false},      // one byte short
      {159, 1000, 159, 5, 159, true},       // slots are rounded down
      {9999, 1000, 9999, 460, 9999, true},  // no slot that nothing could fill
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT("asked " << c.asked << " usable " << c.usable) {
      const MemoryPlan plan =
          PlanMemory(kSizes, {.budget_bytes = c.asked, .usable_bytes = c.usable});
      BOOST_TEST(plan.budget_bytes == c.budget);
      BOOST_TEST(plan.cache_bytes == c.cache);
      BOOST_TEST(plan.limit_bytes == c.limit);
      BOOST_TEST(plan.slot_count == 4 + c.cache / 5);
      BOOST_TEST(plan.fits == c.fits);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_other_models_have_reserved_is_not_usable) {
  struct {
    int64_t asked, reserved, usable, budget;
    bool fits;
  } const kCases[] = {
      {0, 0, 1000, 610, true},   {0, 200, 800, 270, true}, {0, 851, 149, 150, false},
      {0, 5000, 0, 150, false},   // more than there is, somebody's explicit budget
      {400, 5000, 0, 400, true},  // the user's word
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT("asked " << c.asked << " reserved " << c.reserved) {
      const MemoryPlan plan = PlanMemory(
          kSizes, {.budget_bytes = c.asked, .usable_bytes = 1000, .reserved_bytes = c.reserved});
      BOOST_TEST(plan.reserved_bytes == c.reserved);
      BOOST_TEST(plan.usable_bytes == c.usable);
      BOOST_TEST(plan.budget_bytes == c.budget);
      BOOST_TEST(plan.fits == c.fits);
      BOOST_TEST(plan.allocated_bytes() == plan.floor_bytes + plan.cache_bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(longer_steps_of_prefill_take_at_most_a_quarter_of_what_is_beyond_the_floor) {
  ModelSizes sizes = kSizes;
  sizes.prefill_steps = {{{256, 0}, {512, 10}, {1024, 30}}};
  struct {
    int64_t asked, rows, prefill, cache;
  } const kCases[] = {
      {150, 256, 0, 0},      {189, 256, 0, 35},
      {190, 512, 10, 30},    {269, 512, 10, 105},
      {270, 1024, 30, 90},   {610, 256, 0, 460},  // every expert fits, and all stay
      {639, 512, 10, 460},   {640, 1024, 30, 460},
      {9999, 1024, 30, 460}, {0, 1024, 30, 460},  // automatic: the whole bank and the longest step
  };
  for (const auto& c : kCases) {
    const MemoryPlan plan = PlanMemory(sizes, {.budget_bytes = c.asked, .usable_bytes = 1000});
    BOOST_TEST_CONTEXT("asked " << c.asked) {
      BOOST_TEST(plan.floor_bytes == 150);
      BOOST_TEST(plan.prefill_rows == c.rows);
      BOOST_TEST(plan.prefill_bytes == c.prefill);
      BOOST_TEST(plan.cache_bytes == c.cache);
      BOOST_TEST(plan.allocated_bytes() <= plan.budget_bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(model_without_experts_has_no_slots) {
  const ModelSizes dense{.trunk_bytes = 100, .state_bytes = 20, .scratch_bytes = 10};
  const MemoryPlan plan = PlanMemory(dense, {.budget_bytes = 0, .usable_bytes = 1000});
  BOOST_TEST(plan.floor_bytes == 130);
  BOOST_TEST(plan.budget_bytes == 130);
  BOOST_TEST(plan.slot_count == 0);
  BOOST_TEST(plan.fits);
}

BOOST_AUTO_TEST_CASE(fewer_experts_than_top_k_need_no_more_slots_than_experts) {
  ModelSizes sizes = kSizes;
  sizes.expert_total = 3;
  const MemoryPlan plan = PlanMemory(sizes, {.budget_bytes = 0, .usable_bytes = 1000});
  BOOST_TEST(plan.staging_bytes == 15);
  BOOST_TEST(plan.cache_bytes == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
