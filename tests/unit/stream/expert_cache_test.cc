// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "stream/expert_cache.h"
#include "support/allocation_count.h"
#include "support/cache_rig.h"
#include "support/eventually.h"

namespace waste {
namespace {

BOOST_FIXTURE_TEST_SUITE(expert_cache, CacheRig)

BOOST_AUTO_TEST_CASE(each_expert_comes_once_with_the_bytes_of_the_bank) {
  for (const int32_t lanes : {1, 3}) {
    const auto cache = Cache(6, 4, false, lanes);
    for (int round = 0; round < 2; ++round) {
      for (int32_t layer = 1; layer <= 3; ++layer) {
        const Experts experts = {5, 0, 7, 2};
        const Contents contents = MustFetch(*cache, layer, experts);
        for (size_t i = 0; i < experts.size(); ++i)
          BOOST_TEST((contents[i] == Direct(layer, experts[i])));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_here_comes_first_while_the_others_are_read) {
  const auto cache = Cache(6, 4);
  MustFetch(*cache, 1, {2, 5});
  faults[0]->delay_us = 20'000;
  std::vector<std::vector<int64_t>> calls;
  const Status status = cache->Fetch(1, Experts{1, 2, 4, 5}, kNoStop, [&](const auto& arrived) {
    calls.emplace_back();
    for (const ArrivedExpert& one : arrived) calls.back().push_back(one.index);
  });
  Require(status);
  BOOST_TEST(calls.size() == 3);
  BOOST_TEST(calls[0] == (std::vector<int64_t>{1, 3}), boost::test_tools::per_element());
  BOOST_TEST(calls[1] == (std::vector<int64_t>{0}), boost::test_tools::per_element());
  BOOST_TEST(calls[2] == (std::vector<int64_t>{2}), boost::test_tools::per_element());
}

// Four reads of 30 ms and work of 30 ms in between take about as long as the reads alone.
BOOST_AUTO_TEST_CASE(the_first_call_comes_while_reads_are_under_way) {
  const auto cache = Cache(4, 4, false, 4);
  faults[0]->delay_us = 50'000;
  bool first = true;
  int64_t reads_begun = 0;
  Require(cache->Fetch(1, Experts{0, 1, 2, 3}, kNoStop, [&](const auto& arrived) {
    if (!std::exchange(first, false)) return;
    BOOST_TEST(arrived.empty());
    Eventually([&] { return faults[0]->reads >= 4; });
    reads_begun = faults[0]->reads;
  }));
  BOOST_TEST(reads_begun == 4);  // all lanes read while this thread was in `use`
}

BOOST_AUTO_TEST_CASE(nothing_is_asked_for_and_nothing_comes) {
  const auto cache = Cache(2, 2);
  BOOST_TEST(MustFetch(*cache, 1, {}).empty());
  BOOST_TEST(cache->counters().misses == 0);
}

BOOST_AUTO_TEST_CASE(counters_are_exact) {
  const auto cache = Cache(4, 3);
  const int64_t record = container->record_bytes();
  MustFetch(*cache, 1, {0, 1, 2});
  MustFetch(*cache, 1, {2, 3, 0});
  const ExpertCacheCounters counters = cache->counters();
  BOOST_TEST(counters.hits == 2);
  BOOST_TEST(counters.misses == 4);
  BOOST_TEST(counters.bytes_read == 4 * record);
  BOOST_TEST(faults[0]->reads == 4);
}

BOOST_AUTO_TEST_CASE(time_spent_waiting_is_counted) {
  const auto cache = Cache(4, 3);
  faults[0]->delay_us = 50'000;
  MustFetch(*cache, 1, {0, 1});
  BOOST_TEST(cache->counters().wait_us >= 50'000);
  BOOST_TEST(cache->counters().stalls >= 1);
  const int64_t wait_us = cache->counters().wait_us;
  MustFetch(*cache, 1, {0, 1});
  BOOST_TEST(cache->counters().wait_us == wait_us);
}

BOOST_AUTO_TEST_CASE(the_expert_used_least_goes_first) {
  const auto cache = Cache(3, 3);
  MustFetch(*cache, 1, {0, 1, 2});
  MustFetch(*cache, 1, {0});
  MustFetch(*cache, 2, {0});  // in place of layer 1's expert 1
  BOOST_TEST(Hits(*cache, 1, {2}) == 1);
  BOOST_TEST(Hits(*cache, 1, {0}) == 1);
  BOOST_TEST(Hits(*cache, 2, {0}) == 1);
  BOOST_TEST(Hits(*cache, 1, {1}) == 0);
}

BOOST_AUTO_TEST_CASE(one_call_does_not_evict_what_it_asks_for) {
  const auto cache = Cache(3, 3);
  MustFetch(*cache, 1, {0, 1, 2});
  BOOST_TEST(Hits(*cache, 1, {5, 6, 0}) == 1);  // 0 is the oldest, and here
}

BOOST_AUTO_TEST_CASE(an_expert_in_use_is_never_evicted) {
  const auto cache = Cache(4, 4);
  MustFetch(*cache, 1, {3, 4});
  // Reads for the other two go on while these are in use.
  Require(cache->Fetch(1, Experts{3, 4, 6, 7}, kNoStop, [&](const auto& arrived) {
    for (const ArrivedExpert& one : arrived) {
      const auto content = Content(one.record);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      BOOST_TEST((Content(one.record) == content));
    }
  }));
  BOOST_TEST(Hits(*cache, 1, {3, 4, 6, 7}) == 4);
}

BOOST_AUTO_TEST_CASE(a_use_that_throws_leaves_the_cache_sound) {
  const auto cache = Cache(3, 3, false, 2);
  MustFetch(*cache, 1, {0});
  BOOST_CHECK_THROW(static_cast<void>(cache->Fetch(
                        1, Experts{0, 1, 2}, kNoStop,
                        [](const auto&) { throw std::runtime_error("out of memory, say"); })),
                    std::runtime_error);
  const Contents others = MustFetch(*cache, 2, {5, 6, 7});
  for (int32_t i = 0; i < 3; ++i) BOOST_TEST((others[i] == Direct(2, 5 + i)));
}

// A step that wants more of a layer than one fetch may ask for is still one step: what it used does
// not outweigh what steps before it used again and again.
BOOST_AUTO_TEST_CASE(fetches_of_one_layer_are_one_step) {
  const auto cache = Cache(5, 2);
  for (int step = 0; step < 6; ++step) MustFetch(*cache, 1, {0, 1});
  for (int step = 0; step < 4; ++step)
    for (const int32_t first : {0, 2, 4, 6}) MustFetch(*cache, 2, {first, first + 1});
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 2);
}

// Against a plain list of what is there, sorted by count when one has to go.
BOOST_AUTO_TEST_CASE(hits_are_those_of_a_plain_list) {
  using Id = std::pair<int32_t, int32_t>;
  for (const int64_t slots : {4, 5, 9, 24, 40}) {
    const auto cache = Cache(slots, 4);
    std::mt19937 random(static_cast<uint32_t>(slots));
    std::map<Id, double> counts;
    std::vector<Id> there;
    double gain = 1;
    int64_t hits = 0, asked = 0;
    Id last = {-1, -1};
    for (int step = 0; step < 3000; ++step) {
      const int32_t layer = 1 + static_cast<int32_t>(random() % 3);
      Experts experts(8);
      for (int32_t e = 0; e < 8; ++e) experts[e] = e;
      std::shuffle(experts.begin(), experts.end(), random);
      experts.resize(random() % 5);
      if (!experts.empty()) {
        const bool goes_on = std::pair(layer, experts.front()) > last;
        if (!goes_on) gain *= std::exp2(1 / SlotTable::kHalfLife);
        last = {layer, experts.back()};
      }
      for (const int32_t expert : experts) {
        hits += static_cast<int64_t>(std::erase(there, Id(layer, expert)));
        counts[{layer, expert}] += gain;
      }
      asked += static_cast<int64_t>(experts.size());
      std::sort(there.begin(), there.end(),
                [&](Id a, Id b) { return std::pair(counts[b], b) < std::pair(counts[a], a); });
      there.resize(std::min(there.size(), static_cast<size_t>(slots) - experts.size()));
      for (const int32_t expert : experts) there.emplace_back(layer, expert);
      MustFetch(*cache, layer, experts);
      BOOST_REQUIRE_EQUAL(cache->counters().hits, hits);
      BOOST_REQUIRE_EQUAL(cache->counters().misses, asked - hits);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failed_read_names_the_expert_and_leaves_the_cache_sound) {
  const auto cache = Cache(3, 3);
  for (int64_t fail = 0; fail < 3; ++fail) {
    faults[1]->reads = 0;
    faults[1]->fail_from = fail;
    Contents contents;
    const Status status = Fetch(*cache, 2, {4, 5, 6}, contents);
    BOOST_CHECK(status.code() == Code::kIo);
    BOOST_TEST(status.message().find("bank 2, expert " + std::to_string(4 + fail)) !=
               std::string::npos);
    faults[1]->fail_from = FileFaults::kNever;
    // All three slots can be had, and hold what they should.
    const Contents others = MustFetch(*cache, 1, {0, 1, 2});
    for (int32_t i = 0; i < 3; ++i) BOOST_TEST((others[i] == Direct(1, i)));
  }
}

BOOST_AUTO_TEST_CASE(an_expert_whose_read_failed_is_read_again) {
  const auto cache = Cache(4, 2);
  faults[0]->fail_from = 1;
  Contents contents;
  BOOST_TEST(!Fetch(*cache, 1, {0, 1}, contents).ok());
  faults[0]->fail_from = FileFaults::kNever;
  const ExpertCacheCounters failed = cache->counters();
  BOOST_TEST(failed.misses == 2);
  BOOST_TEST(failed.bytes_read == container->record_bytes());
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 1);  // 0 had been read
  BOOST_TEST((MustFetch(*cache, 1, {1})[0] == Direct(1, 1)));
}

BOOST_AUTO_TEST_CASE(a_medium_that_is_pulled_out_and_put_back) {
  const auto cache = Cache(4, 4);
  MustFetch(*cache, 1, {0, 1});
  faults[0]->fail_from = 0;
  Contents contents;
  BOOST_CHECK(Fetch(*cache, 1, {0, 1, 2}, contents).code() == Code::kIo);
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 2);  // what is in memory still serves
  faults[0]->fail_from = FileFaults::kNever;
  BOOST_TEST(Hits(*cache, 1, {0, 1, 2}) == 2);
}

BOOST_AUTO_TEST_CASE(reads_that_fail_by_chance_never_give_wrong_bytes) {
  const auto cache = Cache(5, 3, false, 2);
  std::mt19937 random(5);
  for (const auto& f : faults) {
    f->seed = 11;
    f->failures_of_1000 = 450;  // twice in a row ends the fetch
  }
  int64_t failures = 0;
  std::vector<std::vector<uint8_t>> expected;
  auto sound = tiny.Open();
  for (int step = 0; step < 1000; ++step) {
    const int32_t layer = 1 + static_cast<int32_t>(random() % 3);
    const int32_t first = static_cast<int32_t>(random() % 6);
    const Experts experts = {first, first + 1, first + 2};
    Contents contents;
    if (!Fetch(*cache, layer, experts, contents).ok()) {
      ++failures;
      continue;
    }
    for (size_t i = 0; i < 3; ++i) {
      auto bytes = Require(AlignedBuffer::Allocate(sound->record_bytes()));
      Require(sound->ReadRecord(layer, experts[i], bytes.bytes(), true));
      const auto record = Require(sound->ParseRecord(layer, experts[i], bytes.bytes()));
      BOOST_REQUIRE((contents[i] == Content(record)));
    }
  }
  BOOST_TEST(failures > 50);
  BOOST_TEST(failures < 950);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_found_when_records_are_verified) {
  const int64_t record = container->record_bytes();
  faults[2]->flipped_bit = 8 * (5 * record + 100);  // in the indices of layer 3's expert 5
  const auto careful = Cache(2, 2, true);
  Contents contents;
  const Status status = Fetch(*careful, 3, {4, 5}, contents);
  BOOST_CHECK(status.code() == Code::kCorrupt);
  BOOST_TEST(status.message().find("bank 3, expert 5") != std::string::npos);
  BOOST_TEST(Hits(*careful, 3, {4}) == 1);
  const auto trusting = Cache(2, 2, false);
  BOOST_TEST(Hits(*trusting, 3, {4, 5}) == 0);
}

BOOST_AUTO_TEST_CASE(a_damaged_header_is_found_always) {
  faults[0]->flipped_bit = 0;  // the magic of expert 0
  const auto cache = Cache(2, 2);
  Contents contents;
  for (int i = 0; i < 2; ++i) BOOST_TEST(!Fetch(*cache, 1, {1, 0}, contents).ok());
  BOOST_TEST(Hits(*cache, 1, {1}) == 1);
}

BOOST_AUTO_TEST_CASE(experts_that_do_not_exist_are_refused) {
  const auto cache = Cache(2, 2);
  const std::pair<int32_t, int32_t> kAbsent[] = {{1, 8}, {1, -1}, {0, 0}, {4, 0}, {-1, 0}};
  for (const auto& [layer, expert] : kAbsent) {
    Contents contents;
    const Status status = Fetch(*cache, layer, {expert}, contents);
    BOOST_CHECK(status.code() == Code::kArgument);
    BOOST_TEST(contents[0].empty());
  }
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 0);
}

BOOST_AUTO_TEST_CASE(stop_is_polled_while_reads_are_waited_for) {
  const auto cache = Cache(8, 4);
  faults[0]->delay_us = 30'000;
  Contents contents;
  const auto stop_after_two = [&] { return faults[0]->reads > 2; };
  const Status status = Fetch(*cache, 1, {0, 1, 2, 3}, contents, stop_after_two);
  BOOST_CHECK(status.code() == Code::kCancelled);
  BOOST_TEST(faults[0]->reads ==
             3);  // the one that was under way is waited for, the last not begun
  faults[0]->delay_us = 0;
  BOOST_TEST(Hits(*cache, 1, {0, 1, 2, 3}) == 2);  // what was handed over is kept
  // What is in memory needs no read and no leave.
  Require(Fetch(*cache, 1, {0, 1}, contents, [] { return true; }));
}

BOOST_AUTO_TEST_CASE(a_cache_that_could_not_work_is_refused) {
  const std::pair<int64_t, int64_t> kBad[] = {{0, 0}, {4, 0}, {4, 5}, {-1, -1}, {INT64_MAX, 1}};
  for (const auto& [slots, most] : kBad) {
    const auto cache = ExpertCache::Create(*container, {.slot_count = slots, .max_experts = most});
    BOOST_REQUIRE(!cache.ok());
    BOOST_CHECK(cache.status().code() == Code::kArgument);
  }
}

BOOST_AUTO_TEST_CASE(a_fetch_allocates_nothing) {
  const Experts a = {0, 1, 2}, b = {3, 4, 5};
  const auto quiet = tiny.Open();  // FakeFile is not free of allocations; this one is
  const auto cache = Require(ExpertCache::Create(*quiet, {.slot_count = 4, .max_experts = 3}));
  int64_t used = 0;
  const ExpertSource::Use use = [&](const auto& arrived) { used += std::ssize(arrived); };
  Require(cache->Fetch(1, a, kNoStop, use));
  const int64_t allocated = allocation_count;
  bool good = true;
  for (const Experts* experts : {&a, &b, &a, &a})
    good = good && cache->Fetch(1, *experts, kNoStop, use).ok();
  BOOST_TEST(allocation_count == allocated);
  BOOST_TEST(good);
  BOOST_TEST(used == 15);
}

BOOST_AUTO_TEST_CASE(a_guess_allocates_nothing) {
  const auto quiet = tiny.Open();
  const auto cache =
      Require(ExpertCache::Create(*quiet, {.slot_count = 6, .max_experts = 3, .max_expected = 3}));
  const Experts asked[] = {{0, 1, 2}, {3, 4, 5}, {2, 3, 4}};
  struct State {
    ExpertCache& cache;
    const Experts* expected = nullptr;
    int32_t layer = 0;
  } state{*cache};
  const ExpertSource::Use use = [&state](const auto&) {
    state.cache.Expect(state.layer % 3 + 1, *state.expected);
  };
  const auto fetch = [&](int32_t layer) {
    state.layer = layer;
    state.expected = &asked[layer % 3];
    return cache->Fetch(layer, asked[layer - 1], kNoStop, use).ok();
  };
  bool good = fetch(1) && fetch(2) && fetch(3);
  const int64_t allocated = allocation_count;
  for (int round = 0; round < 5; ++round) good = good && fetch(1) && fetch(2) && fetch(3);
  BOOST_TEST(allocation_count == allocated);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(fewer_slots_keep_the_experts_used_most) {
  const auto cache = Cache(6, 2);
  for (int32_t expert = 0; expert < 6; ++expert) MustFetch(*cache, 1, {expert});
  cache->LimitSlots(3);
  for (const int32_t expert : {5, 4, 3}) BOOST_TEST(Hits(*cache, 1, {expert}) == 1);
  BOOST_TEST(Hits(*cache, 1, {0}) == 0);
  BOOST_TEST(Hits(*cache, 1, {5}) == 0);  // made room for 0
  cache->LimitSlots(100);                 // all six again, three of them empty
  const int64_t misses = cache->counters().misses;
  for (int32_t expert = 0; expert < 3; ++expert) MustFetch(*cache, 2, {expert});
  BOOST_TEST(cache->counters().misses == misses + 3);
  for (int32_t expert = 0; expert < 3; ++expert) BOOST_TEST(Hits(*cache, 2, {expert}) == 1);
}

BOOST_AUTO_TEST_CASE(there_are_always_slots_for_one_call) {
  const auto cache = Cache(6, 4);
  for (const int64_t limit : {int64_t{0}, INT64_MIN, int64_t{4}}) {
    cache->LimitSlots(limit);
    MustFetch(*cache, 1, {0, 1, 2, 3});
    BOOST_TEST(Hits(*cache, 1, {3, 2, 1, 0}) == 4);
  }
}

BOOST_AUTO_TEST_CASE(slots_in_use_are_given_up_when_the_fetch_ends) {
  const auto cache = Cache(4, 2);
  MustFetch(*cache, 1, {0, 1});
  Require(cache->Fetch(1, Experts{2, 3}, kNoStop, [&](const auto& arrived) {
    cache->LimitSlots(2);
    for (const ArrivedExpert& one : arrived)
      BOOST_TEST((Content(one.record) == Direct(1, 2 + static_cast<int32_t>(one.index))));
  }));
  BOOST_TEST(Hits(*cache, 1, {2, 3}) == 2);
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 0);
}

// The slots that are not in use are given back while the fetch still waits for its reads.
BOOST_AUTO_TEST_CASE(a_fetch_that_waits_gives_slots_back) {
  const auto cache = Cache(8, 1);
  for (int32_t expert = 0; expert < 8; ++expert) MustFetch(*cache, 1, {expert});
  faults[1]->delay_us = 500'000;
  int64_t held = 8;
  const auto stop = [&] {
    held = cache->counters().slots;
    return false;
  };
  Contents contents;
  std::thread shrinking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cache->LimitSlots(2);
  });
  Require(Fetch(*cache, 2, {0}, contents, stop));
  shrinking.join();
  BOOST_TEST(held == 2);
  BOOST_TEST((contents[0] == Direct(2, 0)));
}

BOOST_AUTO_TEST_CASE(many_threads_share_a_cache) {
  const auto cache = Cache(7, 3, false, 3);
  std::vector<std::vector<uint8_t>> expected;
  for (int32_t layer = 1; layer <= 3; ++layer)
    for (int32_t expert = 0; expert < 8; ++expert) expected.push_back(Direct(layer, expert));
  std::atomic<int32_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int step = 0; step < 300; ++step) {
        const int32_t layer = 1 + static_cast<int32_t>(random() % 3);
        const int32_t first = static_cast<int32_t>(random() % 6);
        const Experts experts = {first, first + 1, first + 2};
        Contents contents;
        if (!Fetch(*cache, layer, experts, contents).ok()) ++wrong;
        for (size_t i = 0; i < contents.size(); ++i)
          if (contents[i] != expected[(layer - 1) * 8 + experts[i]]) ++wrong;
        if (t == 0 && step % 10 == 0) cache->LimitSlots(3 + step % 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(cache->counters().hits + cache->counters().misses == 4 * 300 * 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
