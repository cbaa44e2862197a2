// SPDX-License-Identifier: Apache-2.0
//
// A container whose banks lie in two folders, as two drives would give them.

#include "container/bank_copies.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "container/verify.h"
#include "support/fake_file.h"
#include "support/temporary_folder.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int64_t kRecord = 8192;
constexpr int32_t kExperts = 8;

void CheckNames(const Status& status, Code code, const std::vector<std::string>& words) {
  BOOST_TEST_CONTEXT(status.message()) {
    BOOST_CHECK(status.code() == code);
    for (const std::string& word : words) BOOST_TEST_CONTEXT(word) {
        BOOST_CHECK(status.message().find(word) != std::string::npos);
      }
  }
}

void FlipByte(const std::string& path, int64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(at);
  const char byte = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x55));
}

// Layers 1 and 2 with 8 experts each; the other folder holds copies of both.
struct TwoDrives {
  TwoDrives() {
    for (const char* name : {"experts-L1.bin", "experts-L2.bin"}) {
      std::filesystem::copy_file(tiny.PathOf(name), other.PathOf(name));
      here.push_back(opener.Fake(tiny.PathOf(name)));
      there.push_back(opener.Fake(other.PathOf(name)));
    }
    const auto alone = tiny.Open();
    for (int32_t layer = 1; layer <= 2; ++layer)
      for (int32_t expert = 0; expert < kExperts; ++expert) {
        expected.emplace_back(kRecord);
        Require(alone->ReadRecord(layer, expert, expected.back(), true));
      }
    List({other.path()});
  }

  static TinyOptions Options() {
    TinyOptions options;
    options.experts = kExperts;
    return options;
  }

  void List(const std::vector<std::string>& folders) const {
    const nlohmann::ordered_json json = {{"folders", folders}};
    std::ofstream(tiny.PathOf("drives.json")) << json.dump();
  }

  std::unique_ptr<Container> Open() const { return tiny.Open(IoMode::kAuto, opener.opener()); }

  // Reads every record `rounds` times and checks its bytes.
  void ReadAll(const Container& container, int rounds = 1, bool verify = false) const {
    Bytes record(kRecord);
    for (int i = 0; i < rounds * 2 * kExperts; ++i) {
      const int32_t number = i % (2 * kExperts);
      Require(container.ReadRecord(1 + number / kExperts, number % kExperts, record, verify));
      BOOST_REQUIRE(record == expected[number]);
    }
  }

  // Makes a drive so slow that a single read goes to the other one.
  static void SlowDown(const std::vector<std::shared_ptr<FileFaults>>& faults) {
    for (const auto& file : faults) file->delay_us = 500;
  }

  static int64_t Reads(const std::vector<std::shared_ptr<FileFaults>>& faults) {
    return faults[0]->reads + faults[1]->reads;
  }

  static std::vector<std::string> Notices(const Container& container) {
    std::vector<std::string> notices;
    while (auto notice = container.NextNotice()) notices.push_back(*notice);
    return notices;
  }

  TinyContainer tiny{Options()};
  TemporaryFolder other;
  FakeOpener opener;
  std::vector<std::shared_ptr<FileFaults>> here;  // of layers 1 and 2
  std::vector<std::shared_ptr<FileFaults>> there;
  std::vector<Bytes> expected;  // records, by layer and expert
};

BOOST_FIXTURE_TEST_SUITE(bank_copies, TwoDrives)

BOOST_AUTO_TEST_CASE(copies_are_both_read_and_give_the_same_records) {
  const auto container = Open();
  BOOST_TEST(container->copy_count(1) == 2);
  BOOST_TEST(container->CopyPath(2, 1) == other.PathOf("experts-L2.bin"));
  ReadAll(*container, 4);
  BOOST_TEST(Reads(here) > 0);
  BOOST_TEST(Reads(there) > 0);
  BOOST_TEST(Notices(*container).empty());
  List({});
  BOOST_TEST(Open()->copy_count(1) == 1);
  BOOST_TEST(Open()->total_bytes() == container->total_bytes());
}

BOOST_AUTO_TEST_CASE(striped_banks_are_read_where_they_are) {
  std::filesystem::remove(tiny.PathOf("experts-L2.bin"));
  std::filesystem::remove(other.PathOf("experts-L1.bin"));
  const auto container = Open();
  BOOST_TEST(container->copy_count(1) == 1);
  BOOST_TEST(container->copy_count(2) == 1);
  ReadAll(*container);
  BOOST_TEST(Reads(here) == kExperts);
  BOOST_TEST(Reads(there) == kExperts);
  BOOST_TEST(Notices(*container).empty());
}

BOOST_AUTO_TEST_CASE(a_bank_that_is_nowhere_names_layer_file_and_folders) {
  List({other.path(), "gone"});
  std::filesystem::remove(tiny.PathOf("experts-L2.bin"));
  std::filesystem::remove(other.PathOf("experts-L2.bin"));
  CheckNames(Container::Open(tiny.path(), IoMode::kAuto).status(), Code::kIo,
             {"layer 2", "experts-L2.bin", tiny.path() + ", ", other.path(), tiny.PathOf("gone")});
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_not_there_is_one_notice) {
  List({tiny.path() + "/gone", other.path()});
  const auto container = Open();
  ReadAll(*container);
  const auto notices = Notices(*container);
  BOOST_REQUIRE(notices.size() == 1);
  BOOST_TEST(notices[0].find("drives.json") != std::string::npos, notices[0]);
  BOOST_TEST(notices[0].find(tiny.PathOf("gone")) != std::string::npos, notices[0]);
}

BOOST_AUTO_TEST_CASE(a_copy_of_another_length_is_refused_by_name) {
  std::filesystem::resize_file(other.PathOf("experts-L1.bin"), 4096);
  CheckNames(Container::Open(tiny.path(), IoMode::kAuto).status(), Code::kCorrupt,
             {other.PathOf("experts-L1.bin"), "4096", "copy it again"});
}

BOOST_AUTO_TEST_CASE(copies_that_cannot_be_opened_are_one_notice) {
  for (const char* name : {"experts-L1.bin", "experts-L2.bin"}) opener.Lose(other.PathOf(name));
  const auto container = Open();
  ReadAll(*container);
  const auto notices = Notices(*container);
  BOOST_REQUIRE(notices.size() == 1);
  BOOST_TEST(notices[0].find(other.PathOf("experts-L1.bin")) != std::string::npos, notices[0]);
  opener.Lose(tiny.PathOf("experts-L2.bin"));
  CheckNames(Container::Open(tiny.path(), IoMode::kAuto, opener.opener()).status(), Code::kIo,
             {"layer 2", tiny.path(), other.PathOf("experts-L2.bin"), "is lost"});
}

BOOST_AUTO_TEST_CASE(a_drive_that_fails_midway_is_one_notice_and_is_left_alone) {
  const auto container = Open();
  SlowDown(here);
  ReadAll(*container, 2);
  for (const auto& faults : there) faults->fail_from = faults->reads + 2;
  ReadAll(*container, 8);
  const auto notices = Notices(*container);
  BOOST_REQUIRE(notices.size() == 1);
  BOOST_TEST(notices[0].find(other.path()) != std::string::npos, notices[0]);
  BOOST_TEST(notices[0].find("cannot read") != std::string::npos, notices[0]);
  const int64_t before = Reads(there);
  ReadAll(*container, 2);
  BOOST_TEST(Reads(there) == before);
}

BOOST_AUTO_TEST_CASE(a_failed_drive_is_still_read_where_it_has_the_only_copy) {
  std::filesystem::remove(tiny.PathOf("experts-L2.bin"));
  const auto container = Open();
  SlowDown(here);
  there[0]->fail_from = there[0]->reads.load();
  ReadAll(*container, 4);
  BOOST_TEST(Notices(*container).size() == 1);
  BOOST_TEST(there[1]->reads == 4 * kExperts);
}

BOOST_AUTO_TEST_CASE(a_damaged_header_is_passed_over_with_one_notice) {
  FlipByte(other.PathOf("experts-L1.bin"), 3 * kRecord + 6);
  const auto container = Open();
  SlowDown(here);
  ReadAll(*container, 8);
  const auto notices = Notices(*container);
  BOOST_REQUIRE(notices.size() == 1);
  for (const std::string& word :
       {other.PathOf("experts-L1.bin"), std::string("bank 1, expert 3"), std::string("other copy")})
    BOOST_TEST(notices[0].find(word) != std::string::npos, notices[0]);
  // The drive's other bank is as good as before.
  const int64_t before = there[1]->reads;
  ReadAll(*container, 2);
  BOOST_TEST(there[1]->reads > before);
}

BOOST_AUTO_TEST_CASE(damage_inside_a_record_is_passed_over_when_it_is_looked_for) {
  for (int32_t expert = 0; expert < kExperts; ++expert)
    FlipByte(tiny.PathOf("experts-L2.bin"), expert * kRecord + 5000);
  const auto container = Open();
  SlowDown(there);
  ReadAll(*container, 4, true);
  const auto notices = Notices(*container);
  BOOST_REQUIRE(notices.size() == 1);
  BOOST_TEST(notices[0].find(tiny.PathOf("experts-L2.bin")) != std::string::npos, notices[0]);
}

BOOST_AUTO_TEST_CASE(a_copy_that_was_cut_while_open_is_passed_over_with_one_notice) {
  const auto container = Open();
  SlowDown(there);
  here[0]->end = 3 * kRecord;
  ReadAll(*container, 8);
  BOOST_TEST(Notices(*container).size() == 1);
}

BOOST_AUTO_TEST_CASE(all_copies_failing_is_an_error_that_names_them_and_can_pass) {
  const auto container = Open();
  for (const auto* drive : {&here, &there})
    for (const auto& faults : *drive) faults->fail_from = 0;
  Bytes record(kRecord);
  for (int i = 0; i < 3; ++i)
    CheckNames(container->ReadRecord(1, 5, record, false), Code::kIo,
               {"bank 1, expert 5", tiny.PathOf("experts-L1.bin"), other.PathOf("experts-L1.bin")});
  BOOST_TEST(Notices(*container).empty());
  for (const auto* drive : {&here, &there})
    for (const auto& faults : *drive) faults->fail_from = FileFaults::kNever;
  ReadAll(*container, 2);
  BOOST_TEST(Notices(*container).empty());
}

BOOST_AUTO_TEST_CASE(one_copy_failing_and_one_damaged_is_an_io_error_with_both) {
  const auto container = Open();
  here[0]->end = 0;
  there[0]->fail_from = 0;
  Bytes record(kRecord);
  CheckNames(container->ReadRecord(1, 0, record, false), Code::kIo,
             {tiny.PathOf("experts-L1.bin"), other.PathOf("experts-L1.bin"), "now ends at"});
}

BOOST_AUTO_TEST_CASE(copies_of_another_conversion_are_refused) {
  TinyOptions options = Options();
  options.seed = 2;
  const TinyContainer stranger(options);
  std::filesystem::copy_file(stranger.PathOf("experts-L2.bin"), other.PathOf("experts-L2.bin"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto container = Require(Container::Open(tiny.path(), IoMode::kAuto, opener.opener()));
  CheckNames(container->SetExpertDims(options.dims), Code::kCorrupt,
             {tiny.PathOf("experts-L2.bin"), other.PathOf("experts-L2.bin"), "conversions"});
  // One that is only damaged in its first record is no stranger.
  std::filesystem::copy_file(tiny.PathOf("experts-L2.bin"), other.PathOf("experts-L2.bin"),
                             std::filesystem::copy_options::overwrite_existing);
  for (const int64_t at : {0, 6, 36}) {
    FlipByte(other.PathOf("experts-L2.bin"), at);
    ReadAll(*Open(), 4, true);
    FlipByte(tiny.PathOf("experts-L1.bin"), at);
    ReadAll(*Open(), 4, true);
    FlipByte(tiny.PathOf("experts-L1.bin"), at);
  }
}

BOOST_AUTO_TEST_CASE(a_drive_that_fails_under_many_threads_is_one_notice) {
  const auto container = Open();
  SlowDown(there);
  for (const auto& faults : here) faults->fail_from = faults->reads + 10;
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Bytes record(kRecord);
      for (int i = 0; i < 100; ++i) {
        const int32_t number = (i + 3 * t) % (2 * kExperts);
        const Status status =
            container->ReadRecord(1 + number / kExperts, number % kExperts, record, true);
        if (!status.ok() || record != expected[number]) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(Notices(*container).size() == 1);
}

BOOST_AUTO_TEST_CASE(verify_reads_every_copy) {
  Progress progress;
  const auto container = Open();
  const int64_t before = Reads(here) + Reads(there);
  Require(VerifyContainer(*container, progress));
  BOOST_TEST(Reads(here) + Reads(there) - before == 4 * kExperts);
  BOOST_TEST(progress.done() == container->total_bytes() + 2 * kExperts * kRecord);
  FlipByte(other.PathOf("experts-L2.bin"), 5 * kRecord + kRecord - 1);
  CheckNames(VerifyContainer(*Open(), progress), Code::kCorrupt,
             {other.PathOf("experts-L2.bin"), "bank 2, expert 5", "padding"});
  FlipByte(other.PathOf("experts-L1.bin"), 4 * kRecord + 100);
  CheckNames(VerifyContainer(*Open(), progress), Code::kCorrupt,
             {other.PathOf("experts-L1.bin"), "bank 1, expert 4", "crc32"});
}

// One read after another, each of which takes a while: what a drive of that bandwidth does.
struct Throttle {
  std::mutex mutex;
  int64_t read_us = 0;
  std::atomic<int64_t> reads{0};
};

class ThrottledFile : public File {
 public:
  ThrottledFile(std::unique_ptr<File> real, Throttle& throttle)
      : real_(std::move(real)), throttle_(throttle) {}

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    const std::lock_guard<std::mutex> lock(throttle_.mutex);
    ++throttle_.reads;
    std::this_thread::sleep_for(std::chrono::microseconds(throttle_.read_us));
    return real_->ReadAt(offset, out);
  }
  int64_t size() const override { return real_->size(); }
  const std::string& path() const override { return real_->path(); }

 private:
  std::unique_ptr<File> real_;
  Throttle& throttle_;
};

// How many of `count` reads each drive gets from four threads, and how long they take.
struct Spread {
  int64_t here;
  int64_t there;
  double seconds;
};

Spread Measure(const TwoDrives& drives, int64_t here_us, int64_t there_us, int64_t count) {
  Throttle here, there;
  const auto open = [&](const std::string& path, IoMode) -> Result<std::unique_ptr<File>> {
    WASTE_ASSIGN(std::unique_ptr<File> real, OpenFile(path, IoMode::kBuffered));
    if (path.find("experts-") == std::string::npos) return real;
    Throttle& throttle = path.starts_with(drives.tiny.path()) ? here : there;
    return std::unique_ptr<File>(std::make_unique<ThrottledFile>(std::move(real), throttle));
  };
  const auto container = drives.tiny.Open(IoMode::kBuffered, open);
  here.read_us = here_us;
  there.read_us = there_us;
  here.reads = there.reads = 0;
  std::atomic<int64_t> begun{0};
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      Bytes record(kRecord);
      for (int64_t i = begun++; i < count; i = begun++)
        Require(container->ReadRecord(1 + static_cast<int32_t>(i % 2),
                                      static_cast<int32_t>(i / 2 % kExperts), record, false));
    });
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {here.reads, there.reads, seconds.count()};
}

// The bounds leave room for a machine that has other things to do; tests of DriveSet are exact.
BOOST_AUTO_TEST_CASE(reads_of_throttled_drives_are_spread_by_their_bandwidth) {
  const Spread spread = Measure(*this, 1000, 3000, 300);
  const double ratio = static_cast<double>(spread.here) / static_cast<double>(spread.there);
  BOOST_TEST_MESSAGE("1 to 3 ms a read: " << spread.here << " and " << spread.there << " reads in "
                                          << spread.seconds << " s");
  BOOST_TEST(spread.here + spread.there == 300);
  BOOST_TEST(ratio > 1.6);
  BOOST_TEST(ratio < 6);
}

BOOST_AUTO_TEST_CASE(direct_reads_are_told_only_if_every_copy_has_them) {
  const auto open = [&](bool all) {
    return [this, all](const std::string& path, IoMode mode) -> Result<std::unique_ptr<File>> {
      WASTE_ASSIGN(auto bytes, ReadWholeFile(path, INT64_MAX));
      const bool direct =
          mode != IoMode::kBuffered && (all || path != other.PathOf("experts-L1.bin"));
      return std::unique_ptr<File>(std::make_unique<FakeFile>(
          path, std::move(bytes), std::make_shared<FileFaults>(), direct));
    };
  };
  BOOST_TEST(tiny.Open(IoMode::kAuto, open(true))->direct_io());
  BOOST_TEST(!tiny.Open(IoMode::kAuto, open(false))->direct_io());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
