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
#include "os/system.h"
#include "stream/expert_cache.h"
#include "support/allocation_count.h"
#include "support/fake_file.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

using Experts = std::vector<int32_t>;
using Leases = std::vector<ExpertLease>;

const std::function<bool()> kNoStop = [] { return false; };

// Layers 1 to 3 with 8 experts each; the banks are fakes whose faults a test sets.
struct Fixture {
  Fixture() {
    for (int32_t layer = 1; layer <= 3; ++layer)
      faults.push_back(opener.Fake("experts-L" + std::to_string(layer) + ".bin"));
    container = tiny.Open(IoMode::kAuto, opener.opener());
  }

  std::unique_ptr<ExpertCache> Cache(int64_t slots, int64_t max_leases, bool verify = false) const {
    return Require(ExpertCache::Create(*container, slots, max_leases, verify));
  }

  // The indices and scales of an expert, read without a cache.
  std::vector<uint8_t> Direct(int32_t layer, int32_t expert) const {
    auto bytes = Require(AlignedBuffer::Allocate(container->record_bytes()));
    Require(container->ReadRecord(layer, expert, bytes.bytes(), true));
    return Content(Require(container->ParseRecord(layer, expert, bytes.bytes())));
  }

  static std::vector<uint8_t> Content(const ExpertRecord& record) {
    std::vector<uint8_t> content;
    for (const ExpertMatrix* m : {&record.gate, &record.up, &record.down}) {
      const int64_t size = ExpertIndexBytes(m->codec, m->rows, m->columns);
      content.insert(content.end(), m->indices, m->indices + size);
      content.insert(content.end(), m->scales, m->scales + 2 * m->rows);
    }
    return content;
  }

  static TinyOptions Options() {
    TinyOptions options;
    options.layers = 3;
    options.experts = 8;
    return options;
  }

  TinyContainer tiny{Options()};
  FakeOpener opener;
  std::vector<std::shared_ptr<FileFaults>> faults;  // of layers 1, 2, 3
  std::unique_ptr<Container> container;
};

Leases MustAcquire(ExpertCache& cache, int32_t layer, const Experts& experts) {
  Leases leases;
  const Status status = cache.Acquire(layer, experts, kNoStop, leases);
  BOOST_REQUIRE_MESSAGE(status.ok(), status.message());
  BOOST_REQUIRE_EQUAL(leases.size(), experts.size());
  return leases;
}

// Asks for experts and lets them go; returns how many were in a slot.
int64_t Hits(ExpertCache& cache, int32_t layer, const Experts& experts) {
  const int64_t before = cache.counters().hits;
  MustAcquire(cache, layer, experts);
  return cache.counters().hits - before;
}

BOOST_FIXTURE_TEST_SUITE(expert_cache, Fixture)

BOOST_AUTO_TEST_CASE(leases_come_in_the_order_asked_for_with_the_bytes_of_the_bank) {
  const auto cache = Cache(6, 4);
  for (int round = 0; round < 2; ++round) {
    for (int32_t layer = 1; layer <= 3; ++layer) {
      const Experts experts = {5, 0, 7, 2};
      const Leases leases = MustAcquire(*cache, layer, experts);
      for (size_t i = 0; i < experts.size(); ++i)
        BOOST_TEST((Content(leases[i].record()) == Direct(layer, experts[i])));
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_asked_for_and_nothing_comes) {
  const auto cache = Cache(2, 2);
  BOOST_TEST(MustAcquire(*cache, 1, {}).empty());
  BOOST_TEST(cache->counters().misses == 0);
}

BOOST_AUTO_TEST_CASE(counters_are_exact) {
  const auto cache = Cache(4, 3);
  const int64_t record = container->record_bytes();
  MustAcquire(*cache, 1, {0, 1, 2});
  MustAcquire(*cache, 1, {2, 3, 0});
  const ExpertCacheCounters counters = cache->counters();
  BOOST_TEST(counters.hits == 2);
  BOOST_TEST(counters.misses == 4);
  BOOST_TEST(counters.bytes_read == 4 * record);
  BOOST_TEST(faults[0]->reads == 4);
}

BOOST_AUTO_TEST_CASE(time_spent_reading_is_counted) {
  const auto cache = Cache(4, 3);
  faults[0]->delay_us = 5000;
  MustAcquire(*cache, 1, {0, 1});
  BOOST_TEST(cache->counters().read_us >= 10'000);
  const int64_t read_us = cache->counters().read_us;
  MustAcquire(*cache, 1, {0, 1});
  BOOST_TEST(cache->counters().read_us == read_us);
}

BOOST_AUTO_TEST_CASE(the_expert_used_least_goes_first) {
  const auto cache = Cache(3, 3);
  MustAcquire(*cache, 1, {0, 1, 2});
  MustAcquire(*cache, 1, {0});
  MustAcquire(*cache, 2, {0});  // in place of layer 1's expert 1
  BOOST_TEST(Hits(*cache, 1, {2}) == 1);
  BOOST_TEST(Hits(*cache, 1, {0}) == 1);
  BOOST_TEST(Hits(*cache, 2, {0}) == 1);
  BOOST_TEST(Hits(*cache, 1, {1}) == 0);
}

BOOST_AUTO_TEST_CASE(one_call_does_not_evict_what_it_asks_for) {
  const auto cache = Cache(3, 3);
  MustAcquire(*cache, 1, {0, 1, 2});
  BOOST_TEST(Hits(*cache, 1, {5, 6, 0}) == 1);  // 0 is the oldest, and here
}

BOOST_AUTO_TEST_CASE(pinned_slot_is_never_evicted) {
  const auto cache = Cache(4, 2);
  const Leases held = MustAcquire(*cache, 1, {3, 4});
  const auto content = Content(held[0].record());
  for (int32_t round = 0; round < 3; ++round)
    for (int32_t expert = 0; expert < 8; ++expert) MustAcquire(*cache, 2, {expert});
  BOOST_TEST((Content(held[0].record()) == content));
  BOOST_TEST((content == Direct(1, 3)));
  BOOST_TEST(Hits(*cache, 1, {3, 4}) == 2);
}

BOOST_AUTO_TEST_CASE(an_expert_leased_twice_stays_until_both_leases_end) {
  const auto cache = Cache(2, 1);
  Leases first = MustAcquire(*cache, 1, {0});
  Leases second = MustAcquire(*cache, 1, {0});
  BOOST_TEST(first[0].record().gate.indices == second[0].record().gate.indices);
  first.clear();
  for (int32_t expert = 1; expert < 5; ++expert) MustAcquire(*cache, 1, {expert});
  BOOST_TEST((Content(second[0].record()) == Direct(1, 0)));
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
    int32_t last_layer = -1;
    for (int step = 0; step < 3000; ++step) {
      const int32_t layer = 1 + static_cast<int32_t>(random() % 3);
      Experts experts(8);
      for (int32_t e = 0; e < 8; ++e) experts[e] = e;
      std::shuffle(experts.begin(), experts.end(), random);
      experts.resize(random() % 5);
      if (layer <= last_layer) gain *= std::exp2(1 / SlotTable::kHalfLife);
      last_layer = layer;
      for (const int32_t expert : experts) {
        hits += static_cast<int64_t>(std::erase(there, Id(layer, expert)));
        counts[{layer, expert}] += gain;
      }
      asked += static_cast<int64_t>(experts.size());
      std::sort(there.begin(), there.end(),
                [&](Id a, Id b) { return std::pair(counts[b], b) < std::pair(counts[a], a); });
      there.resize(std::min(there.size(), static_cast<size_t>(slots) - experts.size()));
      for (const int32_t expert : experts) there.emplace_back(layer, expert);
      MustAcquire(*cache, layer, experts);
      BOOST_REQUIRE_EQUAL(cache->counters().hits, hits);
      BOOST_REQUIRE_EQUAL(cache->counters().misses, asked - hits);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_failed_read_names_the_expert_and_leaves_the_cache_sound) {
  const auto cache = Cache(3, 3);
  for (int64_t fail = 0; fail < 3; ++fail) {
    faults[1]->reads = 0;
    faults[1]->fail_read = fail;
    Leases leases;
    const Status status = cache->Acquire(2, Experts{4, 5, 6}, kNoStop, leases);
    BOOST_CHECK(status.code() == Code::kIo);
    BOOST_TEST(status.message().find("bank 2, expert " + std::to_string(4 + fail)) !=
               std::string::npos);
    BOOST_TEST(leases.empty());
    faults[1]->fail_read = FileFaults::kNever;
    // Nothing is leased: all three slots can be had, and hold what they should.
    const Leases others = MustAcquire(*cache, 1, {0, 1, 2});
    for (size_t i = 0; i < 3; ++i)
      BOOST_TEST((Content(others[i].record()) == Direct(1, static_cast<int32_t>(i))));
  }
}

BOOST_AUTO_TEST_CASE(an_expert_whose_read_failed_is_read_again) {
  const auto cache = Cache(4, 2);
  faults[0]->fail_read = 1;
  Leases leases;
  BOOST_TEST(!cache->Acquire(1, Experts{0, 1}, kNoStop, leases).ok());
  const ExpertCacheCounters failed = cache->counters();
  BOOST_TEST(failed.misses == 2);
  BOOST_TEST(failed.bytes_read == container->record_bytes());
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 1);  // 0 had been read
  BOOST_TEST((Content(MustAcquire(*cache, 1, {1})[0].record()) == Direct(1, 1)));
}

BOOST_AUTO_TEST_CASE(a_medium_that_is_pulled_out_and_put_back) {
  const auto cache = Cache(4, 4);
  MustAcquire(*cache, 1, {0, 1});
  faults[0]->fail_from = 0;
  Leases leases;
  BOOST_CHECK(cache->Acquire(1, Experts{0, 1, 2}, kNoStop, leases).code() == Code::kIo);
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 2);  // what is in memory still serves
  faults[0]->fail_from = FileFaults::kNever;
  BOOST_TEST(Hits(*cache, 1, {0, 1, 2}) == 2);
}

BOOST_AUTO_TEST_CASE(reads_that_fail_by_chance_never_give_wrong_bytes) {
  const auto cache = Cache(5, 3);
  std::mt19937 random(5);
  for (const auto& f : faults) {
    f->seed = 11;
    f->failures_of_1000 = 200;
  }
  int64_t failures = 0;
  std::vector<std::vector<uint8_t>> expected;
  auto sound = tiny.Open();
  for (int step = 0; step < 1000; ++step) {
    const int32_t layer = 1 + static_cast<int32_t>(random() % 3);
    const int32_t first = static_cast<int32_t>(random() % 6);
    const Experts experts = {first, first + 1, first + 2};
    Leases leases;
    if (!cache->Acquire(layer, experts, kNoStop, leases).ok()) {
      BOOST_REQUIRE(leases.empty());
      ++failures;
      continue;
    }
    for (size_t i = 0; i < 3; ++i) {
      auto bytes = Require(AlignedBuffer::Allocate(sound->record_bytes()));
      Require(sound->ReadRecord(layer, experts[i], bytes.bytes(), true));
      const auto record = Require(sound->ParseRecord(layer, experts[i], bytes.bytes()));
      BOOST_REQUIRE((Content(leases[i].record()) == Content(record)));
    }
  }
  BOOST_TEST(failures > 50);
  BOOST_TEST(failures < 950);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_found_when_records_are_verified) {
  const int64_t record = container->record_bytes();
  faults[2]->flipped_bit = 8 * (5 * record + 100);  // in the indices of layer 3's expert 5
  const auto careful = Cache(2, 2, true);
  Leases leases;
  const Status status = careful->Acquire(3, Experts{4, 5}, kNoStop, leases);
  BOOST_CHECK(status.code() == Code::kCorrupt);
  BOOST_TEST(status.message().find("bank 3, expert 5") != std::string::npos);
  BOOST_TEST(Hits(*careful, 3, {4}) == 1);
  const auto trusting = Cache(2, 2, false);
  BOOST_TEST(Hits(*trusting, 3, {4, 5}) == 0);
}

BOOST_AUTO_TEST_CASE(a_damaged_header_is_found_always) {
  faults[0]->flipped_bit = 0;  // the magic of expert 0
  const auto cache = Cache(2, 2);
  Leases leases;
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(!cache->Acquire(1, Experts{1, 0}, kNoStop, leases).ok());
    BOOST_TEST(leases.empty());
  }
  BOOST_TEST(Hits(*cache, 1, {1}) == 1);
}

BOOST_AUTO_TEST_CASE(experts_that_do_not_exist_are_refused) {
  const auto cache = Cache(2, 2);
  const std::pair<int32_t, int32_t> kAbsent[] = {{1, 8}, {1, -1}, {0, 0}, {4, 0}, {-1, 0}};
  for (const auto& [layer, expert] : kAbsent) {
    Leases leases;
    BOOST_TEST(!cache->Acquire(layer, Experts{expert}, kNoStop, leases).ok());
    BOOST_TEST(leases.empty());
  }
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 0);
}

BOOST_AUTO_TEST_CASE(stop_is_polled_between_reads) {
  const auto cache = Cache(8, 4);
  int32_t polls = 0;
  Leases leases;
  const Status status = cache->Acquire(
      1, Experts{0, 1, 2, 3}, [&] { return ++polls == 3; }, leases);
  BOOST_CHECK(status.code() == Code::kCancelled);
  BOOST_TEST(leases.empty());
  BOOST_TEST(faults[0]->reads == 2);
  BOOST_TEST(cache->counters().misses == 2);
  BOOST_TEST(Hits(*cache, 1, {0, 1, 2, 3}) == 2);  // what was read is kept
  // What is in memory needs no read and no leave.
  BOOST_TEST(cache
                 ->Acquire(
                     1, Experts{0, 1}, [] { return true; }, leases)
                 .ok());
}

BOOST_AUTO_TEST_CASE(a_cache_that_could_not_work_is_refused) {
  const std::pair<int64_t, int64_t> kBad[] = {{0, 0}, {4, 0}, {4, 5}, {-1, -1}, {INT64_MAX, 1}};
  for (const auto& [slots, leases] : kBad) {
    const auto cache = ExpertCache::Create(*container, slots, leases, false);
    BOOST_REQUIRE(!cache.ok());
    BOOST_CHECK(cache.status().code() == Code::kArgument);
  }
}

BOOST_AUTO_TEST_CASE(a_step_allocates_nothing) {
  const auto cache = Cache(4, 3);
  Leases leases;
  leases.reserve(3);
  const Experts a = {0, 1, 2}, b = {3, 4, 5};
  const auto quiet = tiny.Open();  // FakeFile is not free of allocations; this one is
  const auto real = Require(ExpertCache::Create(*quiet, 4, 3, false));
  BOOST_REQUIRE(real->Acquire(1, a, kNoStop, leases).ok());
  leases.clear();
  const int64_t allocated = allocation_count;
  for (const Experts* experts : {&a, &b, &a, &a}) {
    const Status status = real->Acquire(1, *experts, kNoStop, leases);
    leases.clear();
    if (!status.ok()) break;
  }
  BOOST_TEST(allocation_count == allocated);
  BOOST_TEST(real->counters().misses == 8);
}

BOOST_AUTO_TEST_CASE(fewer_slots_keep_the_experts_used_most) {
  const auto cache = Cache(6, 2);
  for (int32_t expert = 0; expert < 6; ++expert) MustAcquire(*cache, 1, {expert});
  cache->LimitSlots(3);
  for (const int32_t expert : {5, 4, 3}) BOOST_TEST(Hits(*cache, 1, {expert}) == 1);
  BOOST_TEST(Hits(*cache, 1, {0}) == 0);
  BOOST_TEST(Hits(*cache, 1, {5}) == 0);  // made room for 0
  cache->LimitSlots(100);                 // all six again, three of them empty
  const int64_t misses = cache->counters().misses;
  for (int32_t expert = 0; expert < 3; ++expert) MustAcquire(*cache, 2, {expert});
  BOOST_TEST(cache->counters().misses == misses + 3);
  for (int32_t expert = 0; expert < 3; ++expert) BOOST_TEST(Hits(*cache, 2, {expert}) == 1);
}

BOOST_AUTO_TEST_CASE(there_are_always_slots_for_one_call) {
  const auto cache = Cache(6, 4);
  for (const int64_t limit : {int64_t{0}, INT64_MIN, int64_t{4}}) {
    cache->LimitSlots(limit);
    MustAcquire(*cache, 1, {0, 1, 2, 3});
    BOOST_TEST(Hits(*cache, 1, {3, 2, 1, 0}) == 4);
  }
}

BOOST_AUTO_TEST_CASE(a_leased_slot_is_given_up_when_its_lease_ends) {
  const auto cache = Cache(4, 2);
  Leases held = MustAcquire(*cache, 1, {0, 1});
  Leases more = MustAcquire(*cache, 1, {2, 3});
  cache->LimitSlots(2);
  for (int32_t i = 0; i < 2; ++i) {
    BOOST_TEST((Content(held[i].record()) == Direct(1, i)));
    BOOST_TEST((Content(more[i].record()) == Direct(1, 2 + i)));
  }
  held.clear();
  more.clear();
  BOOST_TEST(Hits(*cache, 1, {2, 3}) == 2);
  BOOST_TEST(Hits(*cache, 1, {0, 1}) == 0);
  BOOST_TEST(Hits(*cache, 1, {2}) == 0);
}

BOOST_AUTO_TEST_CASE(leases_may_end_in_other_threads) {
  const auto cache = Cache(4, 4);
  for (int step = 0; step < 200; ++step) {
    Leases leases = MustAcquire(*cache, 1 + step % 3, {0, 1, 2, 3});
    std::thread other([mine = std::move(leases)] {});
    other.join();
  }
  BOOST_TEST(cache->counters().hits + cache->counters().misses == 800);
}

// Two threads want all slots each: one waits for the other's leases to end.
BOOST_AUTO_TEST_CASE(a_call_waits_for_slots_until_it_is_stopped) {
  const auto cache = Cache(2, 2);
  Leases held = MustAcquire(*cache, 1, {0, 1});
  Leases leases;
  int32_t polls = 0;
  const Status status = cache->Acquire(
      2, Experts{0}, [&] { return ++polls == 3; }, leases);
  BOOST_CHECK(status.code() == Code::kCancelled);
  std::thread other([&] { MustAcquire(*cache, 2, {0, 1}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  held.clear();
  other.join();
  BOOST_TEST(Hits(*cache, 2, {0, 1}) == 2);
}

BOOST_AUTO_TEST_CASE(many_threads_share_a_cache) {
  const auto cache = Cache(7, 3);
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
        Leases leases;
        if (!cache->Acquire(layer, experts, kNoStop, leases).ok()) ++wrong;
        for (size_t i = 0; i < leases.size(); ++i)
          if (Content(leases[i].record()) != expected[(layer - 1) * 8 + experts[i]]) ++wrong;
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
