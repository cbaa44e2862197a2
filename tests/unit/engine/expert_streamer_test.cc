// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "engine/expert_streamer.h"
#include "support/eventually.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr int64_t kTopK = 2;

// 3 layers of 8 experts, of which 8 have a slot: twice a layer's worth for staging, and 4.
struct Fixture {
  std::unique_ptr<ExpertStreamer> Open(int64_t cached = 4) {
    const int64_t record = container->record_bytes();
    const MemoryPlan plan{.staging_bytes = 2 * kTopK * record,
                          .cache_bytes = cached * record,
                          .slot_count = 2 * kTopK + cached};
    return Require(ExpertStreamer::Create(*container, plan, kTopK, OpenOptions(), progress));
  }

  // Asks for two experts of layer 2 as often as given.
  static void Use(ExpertStreamer& streamer, int times) {
    const int32_t experts[] = {6, 7};
    for (int i = 0; i < times; ++i)
      Require(streamer.source().Fetch(2, experts, {}, [](const auto&) {}));
  }

  std::string UsagePath() const { return JoinPath(container->folder(), "usage.waste"); }

  TinyContainer tiny{{.layers = 3, .experts = 8}};
  std::unique_ptr<Container> container = tiny.Open();
  Progress progress;
};

BOOST_FIXTURE_TEST_SUITE(expert_streamer, Fixture)

BOOST_AUTO_TEST_CASE(the_next_run_begins_with_what_this_one_used) {
  Use(*Open(), 3);
  BOOST_REQUIRE(FileExists(UsagePath()));
  const auto next = Open();
  // They are read in the background; a use before that is a miss, and tried again with another.
  BOOST_TEST(
      Eventually([&] { return next->counters().bytes_read >= 2 * container->record_bytes(); }));
  Use(*next, 1);
  BOOST_TEST(next->counters().hits == 2);
  BOOST_TEST(next->counters().misses == 0);
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_of_a_run_that_used_nothing_or_chose_nothing) {
  static_cast<void>(Open());
  BOOST_TEST(!FileExists(UsagePath()));
  Use(*Open(0), 1);  // at the floor
  BOOST_TEST(!FileExists(UsagePath()));
  Use(*Open(20), 1);  // everything fits
  BOOST_TEST(!FileExists(UsagePath()));
}

BOOST_AUTO_TEST_CASE(a_damaged_usage_log_is_noted_and_replaced) {
  std::ofstream(UsagePath()) << "no usage log";
  {
    const auto streamer = Open();
    bool noted = false;
    for (auto line = progress.NextLine(); line.has_value(); line = progress.NextLine())
      noted = noted || line->find("usage.waste") != std::string::npos;
    BOOST_TEST(noted);
    Use(*streamer, 1);
  }
  BOOST_TEST(ReadUsageLog(UsagePath()).ok());
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_written_is_no_error) {
  std::filesystem::create_directory(UsagePath());
  Use(*Open(), 1);
  BOOST_TEST(IsFolder(UsagePath()));
}

BOOST_AUTO_TEST_CASE(where_all_experts_fit_they_are_all_read_in_the_background) {
  const auto streamer = Open(20);
  BOOST_TEST(Eventually(
      [&] { return streamer->counters().bytes_read >= 24 * container->record_bytes(); }));
  Use(*streamer, 1);
  BOOST_TEST(streamer->counters().hits == 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
