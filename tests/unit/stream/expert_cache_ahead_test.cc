// SPDX-License-Identifier: Apache-2.0
//
// What a cache reads before it is asked: guesses, filling, and what an earlier run has learned.

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "os/system.h"
#include "stream/background_filler.h"
#include "support/cache_rig.h"
#include "support/eventually.h"

namespace waste {
namespace {

using Filling = ExpertCache::Filling;

struct AheadRig : CacheRig {
  // Fetches experts of a layer and, within that, expects others of the next one.
  static Contents FetchExpecting(ExpertCache& cache, int32_t layer, const Experts& experts,
                                 int32_t next_layer, const Experts& next) {
    Contents contents(experts.size());
    bool first = true;
    Require(cache.Fetch(layer, experts, kNoStop, [&](std::span<const ArrivedExpert> arrived) {
      if (std::exchange(first, false)) cache.Expect(next_layer, next);
      for (const ArrivedExpert& one : arrived) contents[one.index] = Content(one.record);
    }));
    return contents;
  }

  void AwaitReads(int32_t layer, int64_t count) const {
    BOOST_REQUIRE(Eventually([&] { return faults[layer - 1]->reads >= count; }));
  }

  // FillOne until it says so, past the pause that it makes after a fetch.
  static Filling FillUntilIdle(ExpertCache& cache) {
    for (;;) {
      const Filling filling = cache.FillOne();
      if (filling == Filling::kDone) return filling;
      if (filling == Filling::kBusy) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

BOOST_FIXTURE_TEST_SUITE(expert_cache_ahead, AheadRig)

BOOST_AUTO_TEST_CASE(a_guess_that_is_right_is_foreseen_and_read_once) {
  const auto cache = CacheAhead(6, 3, 3);
  FetchExpecting(*cache, 1, {0, 1}, 2, {4, 5});
  AwaitReads(2, 2);
  const Contents contents = MustFetch(*cache, 2, {4, 5, 6});
  for (int32_t i = 0; i < 3; ++i) BOOST_TEST((contents[i] == Direct(2, 4 + i)));
  const ExpertCacheCounters c = cache->counters();
  BOOST_TEST(c.foreseen == 2);
  BOOST_TEST(c.misses == 5);
  BOOST_TEST(c.hits == 0);
  BOOST_TEST(c.bytes_read == 5 * container->record_bytes());
  BOOST_TEST(Hits(*cache, 2, {4, 5, 6}) == 3);  // and from then on they are hits
}

BOOST_AUTO_TEST_CASE(a_guess_that_is_being_read_is_waited_for_and_not_read_again) {
  const auto cache = CacheAhead(6, 3, 3);
  const auto content = Direct(2, 4);
  faults[1]->delay_us = 30'000;
  FetchExpecting(*cache, 1, {0}, 2, {4});
  AwaitReads(2, 2);
  BOOST_TEST((MustFetch(*cache, 2, {4})[0] == content));
  BOOST_TEST(cache->counters().foreseen == 1);
  BOOST_TEST(cache->counters().misses == 2);
  BOOST_TEST(faults[1]->reads == 2);  // the first one was Direct's
}

BOOST_AUTO_TEST_CASE(a_stale_guess_that_has_not_begun_is_never_read) {
  const auto cache = CacheAhead(6, 3, 3);
  faults[1]->delay_us = 300'000;
  FetchExpecting(*cache, 1, {0}, 2, {4, 5, 6});  // one lane: only 4 begins
  AwaitReads(2, 1);
  MustFetch(*cache, 3, {7});
  MustFetch(*cache, 3, {6});
  BOOST_TEST(faults[1]->reads == 1);
  BOOST_TEST(cache->counters().speculative_reads == 1);
  BOOST_TEST(cache->counters().foreseen == 0);
  // What was read in vain is there, and a use of it is a foreseen one.
  BOOST_TEST((MustFetch(*cache, 2, {4})[0] == Direct(2, 4)));
  BOOST_TEST(cache->counters().foreseen == 1);
}

BOOST_AUTO_TEST_CASE(who_has_missed_nothing_for_long_is_not_asked_for_guesses) {
  const auto cache = CacheAhead(6, 3, 3);
  MustFetch(*cache, 1, {0, 1});
  BOOST_TEST(cache->max_expected() == 3);
  for (int i = 0; i < 300; ++i) MustFetch(*cache, 1, {0, 1});
  BOOST_TEST(cache->max_expected() == 0);
  MustFetch(*cache, 2, {1});
  BOOST_TEST(cache->max_expected() == 3);
}

BOOST_AUTO_TEST_CASE(guesses_are_as_many_as_there_is_room_for_the_likeliest_first) {
  const auto cache = CacheAhead(5, 3, 2, 4);
  FetchExpecting(*cache, 1, {0}, 2, {7, 3, 5, 1});
  MustFetch(*cache, 2, {7, 3});
  BOOST_TEST(cache->counters().foreseen == 2);
  BOOST_TEST(faults[1]->reads == 2);
}

BOOST_AUTO_TEST_CASE(what_is_here_and_what_does_not_exist_is_not_read) {
  const auto cache = CacheAhead(6, 3, 3);
  MustFetch(*cache, 2, {4});
  FetchExpecting(*cache, 1, {0}, 2, {4, 8, -1});
  FetchExpecting(*cache, 1, {0}, 0, {4});
  FetchExpecting(*cache, 1, {0}, 99, {4});
  BOOST_TEST(Hits(*cache, 2, {4}) == 1);
  BOOST_TEST(faults[1]->reads == 1);
  BOOST_TEST(cache->counters().speculative_reads == 0);
}

BOOST_AUTO_TEST_CASE(a_guess_does_not_push_out_another_guess_that_is_here) {
  const auto cache = CacheAhead(4, 2, 2);
  MustFetch(*cache, 2, {4});  // the least used of all from now on
  MustFetch(*cache, 3, {0, 1});
  MustFetch(*cache, 3, {0, 1});
  FetchExpecting(*cache, 1, {0}, 2, {5, 4});
  BOOST_TEST(Hits(*cache, 2, {4}) == 1);
}

BOOST_AUTO_TEST_CASE(a_guess_that_cannot_be_read_fails_only_when_it_is_needed) {
  const auto cache = CacheAhead(6, 3, 3);
  faults[1]->fail_from = 0;
  FetchExpecting(*cache, 1, {0}, 2, {4});
  AwaitReads(2, 1);
  MustFetch(*cache, 3, {0});
  Contents contents;
  const Status status = Fetch(*cache, 2, {4}, contents);
  BOOST_CHECK(status.code() == Code::kIo);
  BOOST_TEST(status.message().find("bank 2, expert 4") != std::string::npos);
  faults[1]->fail_from = FileFaults::kNever;
  BOOST_TEST((MustFetch(*cache, 2, {4})[0] == Direct(2, 4)));
}

BOOST_AUTO_TEST_CASE(a_fetch_that_ends_early_takes_guesses_with_it) {
  const auto cache = CacheAhead(6, 3, 3);
  for (int round = 0; round < 10; ++round) {
    faults[0]->fail_read = faults[0]->reads + 1;
    faults[0]->fail_count = 2;  // the second try too
    bool first = true;
    const Status status = cache->Fetch(1, Experts{2, 3, 4}, kNoStop, [&](const auto&) {
      if (std::exchange(first, false)) cache->Expect(2, Experts{1, 2, 3});
    });
    BOOST_CHECK(status.code() == Code::kIo);
    const Contents contents = MustFetch(*cache, 3, {0, 1, 2});
    for (int32_t i = 0; i < 3; ++i) BOOST_TEST((contents[i] == Direct(3, i)));
    MustFetch(*cache, 3, {3, 4, 5});
    MustFetch(*cache, 3, {6, 7});
  }
}

// Random guesses, right and wrong, with few slots: bytes are always those of the bank.
BOOST_AUTO_TEST_CASE(guesses_never_change_what_is_handed_out) {
  for (const int32_t lanes : {1, 4}) {
    const auto cache = CacheAhead(9, 3, 3, lanes);
    std::vector<std::vector<uint8_t>> expected;
    for (int32_t layer = 1; layer <= 3; ++layer)
      for (int32_t expert = 0; expert < 8; ++expert) expected.push_back(Direct(layer, expert));
    std::mt19937 random(static_cast<uint32_t>(lanes));
    const auto some = [&] {
      const auto first = static_cast<int32_t>(random() % 6);
      return Experts{first, first + 1, first + 2};
    };
    int64_t asked = 0;
    for (int32_t step = 0; step < 600; ++step) {
      const int32_t layer = 1 + step % 3;
      const Experts experts = some();
      const Contents contents = FetchExpecting(*cache, layer, experts, 1 + layer % 3, some());
      for (size_t i = 0; i < 3; ++i)
        BOOST_REQUIRE((contents[i] == expected[(layer - 1) * 8 + experts[i]]));
      asked += 3;
      if (step % 50 == 0) cache->LimitSlots(step % 100 == 0 ? 6 : 9);
    }
    const ExpertCacheCounters c = cache->counters();
    BOOST_TEST(c.hits + c.misses == asked);
    BOOST_TEST(c.foreseen > 100);
    BOOST_TEST(c.speculative_bytes == c.speculative_reads * container->record_bytes());
  }
}

BOOST_AUTO_TEST_CASE(a_cache_without_room_for_its_guesses_is_refused) {
  for (const auto& [most, ahead] : {std::pair(3, 2), std::pair(4, 1), std::pair(1, -1)})
    BOOST_CHECK(ExpertCache::Create(*container,
                                    {.slot_count = 4, .max_experts = most, .max_expected = ahead})
                    .status()
                    .code() == Code::kArgument);
}

BOOST_AUTO_TEST_CASE(where_all_experts_fit_all_are_filled_in) {
  const auto cache = CacheAhead(24, 2, 2);
  BOOST_CHECK(FillUntilIdle(*cache) == Filling::kDone);
  BOOST_TEST(cache->counters().filled == 24);
  for (int32_t layer = 1; layer <= 3; ++layer)
    for (int32_t expert = 0; expert < 8; ++expert)
      BOOST_TEST((MustFetch(*cache, layer, {expert})[0] == Direct(layer, expert)));
  BOOST_TEST(cache->counters().hits == 24);
}

BOOST_AUTO_TEST_CASE(where_they_do_not_only_what_was_learned_is) {
  const auto cache = CacheAhead(8, 2, 2);
  BOOST_CHECK(FillUntilIdle(*cache) == Filling::kDone);
  BOOST_TEST(cache->counters().filled == 0);
  UsageLog usage;
  for (uint16_t expert = 0; expert < 8; ++expert)
    usage.entries.push_back({2, expert, uint32_t{100} + expert, 0});
  usage.entries.push_back({9, 1, 999, 0});  // a layer that is not here
  usage.entries.push_back({1, 8, 999, 0});  // an expert that is not
  usage.entries.push_back({3, 1, 0, 0});    // one that was never used
  cache->Learn(usage);
  FillUntilIdle(*cache);
  // A slot is left for the read that fills and four for a fetch: the most used are here.
  BOOST_TEST(cache->counters().filled == 8);
  BOOST_TEST(Hits(*cache, 2, {7, 6}) == 2);
}

BOOST_AUTO_TEST_CASE(nothing_is_filled_while_somebody_fetches_or_a_moment_later) {
  const auto cache = CacheAhead(24, 2, 2);
  const int64_t start = MonotonicMicros();
  Require(cache->Fetch(1, Experts{0}, kNoStop, [&](const auto&) {
    Filling filling = Filling::kDone;
    std::thread([&] { filling = cache->FillOne(); }).join();
    BOOST_CHECK(filling == Filling::kBusy);
  }));
  const Filling filling = cache->FillOne();
  const bool is_soon = MonotonicMicros() - start < 50'000;  // on a loaded machine it may not be
  BOOST_CHECK(!is_soon || filling == Filling::kBusy);
}

BOOST_AUTO_TEST_CASE(a_fill_that_fails_is_left_out) {
  faults[1]->fail_read = 3;
  faults[1]->fail_count = 2;  // the second try too
  const auto cache = CacheAhead(24, 2, 2);
  FillUntilIdle(*cache);
  BOOST_TEST(cache->counters().filled == 23);
  BOOST_TEST((MustFetch(*cache, 2, {3})[0] == Direct(2, 3)));
  BOOST_TEST(cache->counters().misses == 1);
}

// Fetches, guesses, shrinking and a filler at once.
BOOST_AUTO_TEST_CASE(a_filler_works_beside_fetches) {
  std::vector<std::vector<uint8_t>> expected;
  for (int32_t layer = 1; layer <= 3; ++layer)
    for (int32_t expert = 0; expert < 8; ++expert) expected.push_back(Direct(layer, expert));
  const auto cache = CacheAhead(24, 3, 3, 2);
  const BackgroundFiller filler(*cache);
  std::mt19937 random(3);
  for (int32_t step = 0; step < 300; ++step) {
    if (step % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    if (step % 20 == 10) cache->LimitSlots(6 + random() % 20);
    const int32_t layer = 1 + step % 3;
    const auto first = static_cast<int32_t>(random() % 6);
    const Experts experts = {first, first + 1, first + 2};
    const Contents contents = FetchExpecting(*cache, layer, experts, 1 + layer % 3, {0, 1, 2});
    for (size_t i = 0; i < 3; ++i)
      BOOST_REQUIRE((contents[i] == expected[(layer - 1) * 8 + experts[i]]));
  }
  BOOST_TEST(cache->counters().filled > 0);
}

BOOST_AUTO_TEST_CASE(a_cache_tells_what_it_holds_and_another_learns_it) {
  const auto first = CacheAhead(8, 2, 2);
  for (int i = 0; i < 5; ++i) MustFetch(*first, 2, {6, 7});
  MustFetch(*first, 3, {1});
  const UsageLog usage = first->Usage();
  BOOST_TEST(usage.tokens == 4);  // steps begun after the first
  BOOST_REQUIRE(usage.entries.size() == 3);
  uint32_t often = 0, once = 0;
  for (const UsageLog::Entry& entry : usage.entries) (entry.layer == 3 ? once : often) = entry.hits;
  BOOST_TEST(often > once);
  BOOST_TEST(once > 0);

  const auto second = CacheAhead(8, 2, 2);
  second->Learn(usage);
  FillUntilIdle(*second);
  BOOST_TEST(Hits(*second, 2, {6, 7}) == 2);
  BOOST_TEST(Hits(*second, 3, {1}) == 1);
  BOOST_TEST(Hits(*second, 1, {0}) == 0);  // which begins another step
  BOOST_TEST(second->Usage().tokens == 5);
}

// What others have counted, without decay, weighs no more than what was counted here.
BOOST_AUTO_TEST_CASE(large_counts_of_others_are_outlived) {
  const auto cache = CacheAhead(4, 2, 0);
  cache->Learn({.tokens = 9, .entries = {{1, 0, 4'000'000'000u, 0}, {1, 1, 3'900'000'000u, 0}}});
  FillUntilIdle(*cache);
  for (int step = 0; step < 40; ++step) {
    MustFetch(*cache, 2, {0, 1});
    MustFetch(*cache, 3, {0, 1});
  }
  BOOST_TEST(Hits(*cache, 2, {0, 1}) == 2);
  BOOST_TEST(Hits(*cache, 3, {0, 1}) == 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
