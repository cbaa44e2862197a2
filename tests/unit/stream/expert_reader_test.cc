// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "stream/expert_reader.h"
#include "stream/lane_calibration.h"
#include "support/eventually.h"
#include "support/fake_file.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

// One bank of 16 experts on a fake file that a test makes slow.
struct Fixture {
  Fixture() {
    faults = opener.Fake("experts-L1.bin");
    container = tiny.Open(IoMode::kAuto, opener.opener());
    memory = Require(AlignedBuffer::Allocate(16 * container->record_bytes()));
  }

  std::unique_ptr<ExpertReader> Reader(int32_t lanes) const {
    return Require(ExpertReader::Create(*container, lanes, 16, true));
  }

  // The id of a request is its expert.
  void Ask(ExpertReader& reader, const std::vector<int32_t>& experts, ReadPriority priority) {
    std::vector<ExpertReader::Request> requests;
    const auto bytes = static_cast<size_t>(container->record_bytes());
    for (const int32_t expert : experts)
      requests.push_back({expert, 1, expert, memory.bytes().subspan(expert * bytes, bytes)});
    reader.Read(requests, priority);
  }

  // Begins the read of expert 0, which takes so long that all that follows is asked for meanwhile.
  void HoldFirst(ExpertReader& reader) {
    faults->delay_us = 300'000;
    Ask(reader, {0}, ReadPriority::kDemand);
    AwaitReads(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it has read how long it takes
    faults->delay_us = 0;
  }

  // Experts in the order in which their reads end.
  static std::vector<int64_t> Take(ExpertReader& reader, size_t count) {
    std::vector<int64_t> ids;
    while (ids.size() < count) {
      const auto done = reader.Wait(10'000);
      if (!done.has_value()) throw std::runtime_error("a read did not end");
      Require(done->status);
      ids.push_back(done->id);
    }
    return ids;
  }

  void AwaitReads(int64_t count) const {
    BOOST_REQUIRE(Eventually([&] { return faults->reads >= count; }));
  }

  TinyContainer tiny{{.layers = 1, .experts = 16}};
  FakeOpener opener;
  std::shared_ptr<FileFaults> faults;
  std::unique_ptr<Container> container;
  AlignedBuffer memory;
};

using Ids = std::vector<int64_t>;
constexpr auto kDemand = ReadPriority::kDemand;
constexpr auto kSpeculation = ReadPriority::kSpeculation;

BOOST_FIXTURE_TEST_SUITE(expert_reader, Fixture)

BOOST_AUTO_TEST_CASE(demand_goes_before_speculation_that_has_not_begun) {
  const auto reader = Reader(1);
  HoldFirst(*reader);
  Ask(*reader, {1, 2}, kSpeculation);
  Ask(*reader, {3, 4}, kDemand);
  BOOST_TEST(Take(*reader, 5) == (Ids{0, 3, 4, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(speculation_that_turns_out_to_be_needed_goes_behind_the_demands) {
  const auto reader = Reader(1);
  HoldFirst(*reader);
  Ask(*reader, {1, 2, 3}, kSpeculation);
  Ask(*reader, {4}, kDemand);
  reader->Promote(3);
  reader->Promote(0);  // which is being read: nothing to do
  BOOST_TEST(Take(*reader, 5) == (Ids{0, 4, 3, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_was_not_begun_can_be_taken_back) {
  const auto reader = Reader(1);
  HoldFirst(*reader);
  Ask(*reader, {1}, kDemand);
  Ask(*reader, {2, 3}, kSpeculation);
  BOOST_TEST(!reader->Cancel(0));  // being read
  BOOST_TEST(reader->Cancel(1));
  BOOST_TEST(reader->Cancel(2));
  BOOST_TEST(!reader->Cancel(2));
  BOOST_TEST(Take(*reader, 2) == (Ids{0, 3}), boost::test_tools::per_element());
  BOOST_TEST(faults->reads == 2);
}

// With four lanes, speculation has two, and a demand begins at once beside it.
BOOST_AUTO_TEST_CASE(speculation_leaves_lanes_for_demand) {
  const auto reader = Reader(4);
  faults->delay_us = 500'000;
  Ask(*reader, {0, 1, 2, 3}, kSpeculation);
  AwaitReads(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(faults->reads == 2);
  faults->delay_us = 0;
  Ask(*reader, {4, 5}, kDemand);
  Ids first = Take(*reader, 2);
  std::sort(first.begin(), first.end());
  BOOST_TEST(first == (Ids{4, 5}), boost::test_tools::per_element());
  BOOST_TEST(Take(*reader, 4).size() == 4);
}

BOOST_AUTO_TEST_CASE(as_many_reads_run_at_once_as_lanes_are_allowed) {
  const auto reader = Reader(4);
  for (const int32_t lanes : {3, 1, 4}) {
    reader->LimitLanes(lanes);
    BOOST_TEST(reader->lanes() == lanes);
    faults->reads = 0;
    faults->delay_us = 400'000;
    Ask(*reader, {0, 1, 2, 3, 4}, kDemand);
    AwaitReads(lanes);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    BOOST_TEST(faults->reads == lanes);
    faults->delay_us = 0;
    Take(*reader, 5);
  }
  reader->LimitLanes(0);
  BOOST_TEST(reader->lanes() == 1);
  reader->LimitLanes(99);
  BOOST_TEST(reader->lanes() == 4);
}

BOOST_AUTO_TEST_CASE(cancelling_all_leaves_nothing_behind) {
  const auto reader = Reader(2);
  for (int round = 0; round < 20; ++round) {
    Ask(*reader, {0, 1, 2, 3, 4}, kDemand);
    Ask(*reader, {5, 6}, kSpeculation);
    reader->CancelAll();
    BOOST_TEST(!reader->Wait(0).has_value());
  }
  Ask(*reader, {7}, kDemand);
  BOOST_TEST(Take(*reader, 1) == (Ids{7}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lanes_out_of_range_are_refused) {
  for (const int32_t lanes : {0, -1, ExpertReader::kMaxLanes + 1}) {
    const auto reader = ExpertReader::Create(*container, lanes, 4, false);
    BOOST_REQUIRE(!reader.ok());
    BOOST_CHECK(reader.status().code() == Code::kArgument);
  }
}

BOOST_AUTO_TEST_CASE(the_fewest_lanes_that_are_as_good_are_chosen) {
  using Speeds = std::vector<LaneSpeed>;
  BOOST_TEST(ChooseLanes({}) == 2);
  BOOST_TEST(ChooseLanes(Speeds{{2, 1000}, {4, 1090}, {8, 1099}}) == 2);
  BOOST_TEST(ChooseLanes(Speeds{{2, 1000}, {4, 1300}, {8, 1350}}) == 4);
  BOOST_TEST(ChooseLanes(Speeds{{2, 100}, {4, 200}, {8, 400}}) == 8);
  BOOST_TEST(ChooseLanes(Speeds{{2, 400}, {4, 200}, {8, 100}}) == 2);
}

// A read takes 20 ms however many there are: eight lanes are four times as fast as two, and even
// on a machine that is busy with other things faster.
BOOST_AUTO_TEST_CASE(lanes_are_measured) {
  const auto reader = Reader(8);
  faults->delay_us = 20'000;
  const auto speeds = MeasureLanes(*container, *reader, memory.bytes());
  BOOST_TEST(speeds.size() == 3);
  BOOST_TEST(ChooseLanes(speeds) > 2);
  faults->delay_us = 0;
  faults->fail_from = 0;
  BOOST_TEST(MeasureLanes(*container, *reader, memory.bytes()).empty());
  faults->fail_from = FileFaults::kNever;
  const auto two = memory.bytes().first(static_cast<size_t>(3 * container->record_bytes()));
  BOOST_TEST(MeasureLanes(*container, *reader, two).size() == 1);  // no room for more
  BOOST_TEST(!reader->Wait(0).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
