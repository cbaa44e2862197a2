// SPDX-License-Identifier: Apache-2.0

#include "container/container.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/crc32.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes ReadFile(const std::string& path) { return Require(ReadWholeFile(path, 1 << 26)); }

void WriteFile(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<int64_t>(bytes.size()));
}

void WriteText(const std::string& path, const std::string& text) {
  WriteFile(path, Bytes(text.begin(), text.end()));
}

// Replaces `from`, which occurs, by `to` in the manifest.
void EditManifest(const TinyContainer& tiny, const std::string& from, const std::string& to) {
  const Bytes bytes = ReadFile(tiny.PathOf("manifest.json"));
  std::string text(bytes.begin(), bytes.end());
  const size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  WriteText(tiny.PathOf("manifest.json"), text.replace(at, from.size(), to));
}

Status OpenStatus(const TinyContainer& tiny) {
  return Container::Open(tiny.path(), IoMode::kBuffered).status();
}

void CheckNames(const Status& status, Code code, const std::vector<std::string>& words) {
  BOOST_TEST_CONTEXT(status.message()) {
    BOOST_CHECK(status.code() == code);
    for (const std::string& word : words) BOOST_TEST_CONTEXT(word) {
        BOOST_CHECK(status.message().find(word) != std::string::npos);
      }
  }
}

// Forwards to a real file, with what a test wants to be different.
class FakeFile : public File {
 public:
  FakeFile(std::unique_ptr<File> real, bool direct, int64_t bad_offset)
      : real_(std::move(real)), direct_(direct), bad_offset_(bad_offset) {}

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    if (offset == bad_offset_) return Failure(Code::kIo, path(), ": the drive is gone");
    return real_->ReadAt(offset, out);
  }
  int64_t size() const override { return real_->size(); }
  const std::string& path() const override { return real_->path(); }
  bool direct() const override { return direct_; }

 private:
  std::unique_ptr<File> real_;
  bool direct_;
  int64_t bad_offset_;
};

BOOST_AUTO_TEST_SUITE(container)

BOOST_AUTO_TEST_CASE(opened_container_tells_its_sizes) {
  const TinyContainer tiny;
  const auto container = tiny.Open();
  int64_t total = 0;
  for (const char* name : {"trunk.bin", "codebooks.bin", "experts-L1.bin", "experts-L2.bin"})
    total += static_cast<int64_t>(std::filesystem::file_size(tiny.PathOf(name)));
  BOOST_TEST(container->total_bytes() == total);
  BOOST_TEST(container->codebook_bytes() == 18 * 256 * 8 * (4 + 4 + 2));
  BOOST_TEST(container->record_bytes() == 8192);
  BOOST_TEST(container->folder() == tiny.path());
}

BOOST_AUTO_TEST_CASE(missing_files_are_named) {
  const TemporaryPath nowhere;
  CheckNames(Container::Open(nowhere.path(), IoMode::kAuto).status(), Code::kIo,
             {nowhere.path(), "no such folder"});
  struct {
    const char* name;
    const char* words;
  } const kCases[] = {{"manifest.json", "did not finish"},
                      {"trunk.bin", "trunk.bin"},
                      {"codebooks.bin", "codebooks.bin"},
                      {"experts-L2.bin", "experts-L2.bin"}};
  for (const auto& c : kCases) {
    const TinyContainer tiny;
    std::filesystem::remove(tiny.PathOf(c.name));
    CheckNames(OpenStatus(tiny), Code::kIo, {tiny.PathOf(c.name), c.words});
  }
}

BOOST_AUTO_TEST_CASE(side_files_may_be_absent) {
  const TinyContainer tiny;
  std::filesystem::remove(tiny.PathOf("tokenizer.model"));
  std::filesystem::remove(tiny.PathOf("specials.json"));
  const auto container = tiny.Open();
  BOOST_TEST(container->rank_file().empty());
  BOOST_TEST(container->specials().empty());
  BOOST_TEST(!container->chat().has_value());
}

BOOST_AUTO_TEST_CASE(unknown_files_are_ignored) {
  const TinyContainer tiny;
  WriteText(tiny.PathOf("usage.waste"), "anything");
  WriteText(tiny.PathOf("vision.json"), "{");
  WriteText(tiny.PathOf("notes.txt"), "");
  BOOST_CHECK(OpenStatus(tiny).ok());
}

BOOST_AUTO_TEST_CASE(broken_side_files_are_named) {
  struct {
    const char* name;
    const char* text;
    Code code;
  } const kCases[] = {{"specials.json", "{", Code::kFormat},
                      {"specials.json", "[{\"id\":-1,\"text\":\"a\"}]", Code::kCorrupt},
                      {"chat.json", "[]", Code::kFormat},
                      {"chat.json", "", Code::kFormat},
                      {"manifest.json", "", Code::kFormat},
                      {"manifest.json", "{\"format_version\":1}", Code::kVersion}};
  for (const auto& c : kCases) {
    const TinyContainer tiny;
    WriteText(tiny.PathOf(c.name), c.text);
    CheckNames(OpenStatus(tiny), c.code, {tiny.PathOf(c.name)});
  }
}

BOOST_AUTO_TEST_CASE(files_of_any_other_length_are_refused_by_name) {
  const TinyContainer sound;
  for (const char* name : {"trunk.bin", "codebooks.bin", "experts-L1.bin"}) {
    const Bytes bytes = ReadFile(sound.PathOf(name));
    const size_t size = bytes.size();
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{47}, size_t{48},
                             size_t{4095}, size_t{4096}, size / 2, size - 1}) {
      if (cut >= size) continue;
      WriteFile(sound.PathOf(name), std::span(bytes).first(cut));
      const auto opened = Container::Open(sound.path(), IoMode::kBuffered);
      // Fewer whole codebooks are a sound file; the records that need more are refused.
      if (opened.ok()) {
        BOOST_TEST(name == std::string("codebooks.bin"));
        Require((*opened)->SetExpertDims(sound.options().dims));
        Bytes record(8192);
        CheckNames((*opened)->ReadRecord(2, 0, record, false), Code::kCorrupt,
                   {"experts-L2.bin", "bank 2, expert 0", "codebooks"});
      } else {
        CheckNames(opened.status(), Code::kCorrupt, {sound.PathOf(name)});
      }
    }
    WriteFile(sound.PathOf(name), bytes);
  }
  Bytes longer = ReadFile(sound.PathOf("experts-L1.bin"));
  longer.resize(longer.size() + 4096);
  WriteFile(sound.PathOf("experts-L1.bin"), longer);
  CheckNames(OpenStatus(sound), Code::kCorrupt, {"experts-L1.bin", "36864", "32768"});
}

BOOST_AUTO_TEST_CASE(banks_that_were_swapped_are_refused) {
  const TinyContainer tiny;
  std::filesystem::rename(tiny.PathOf("experts-L1.bin"), tiny.PathOf("x"));
  std::filesystem::rename(tiny.PathOf("experts-L2.bin"), tiny.PathOf("experts-L1.bin"));
  std::filesystem::rename(tiny.PathOf("x"), tiny.PathOf("experts-L2.bin"));
  const auto container = tiny.Open();
  Bytes record(8192);
  CheckNames(container->ReadRecord(1, 3, record, false), Code::kCorrupt,
             {tiny.PathOf("experts-L1.bin"), "bank 1, expert 3", "says layer 2, expert 3"});
}

BOOST_AUTO_TEST_CASE(dims_that_do_not_fit_the_banks_are_refused) {
  const TinyContainer tiny;
  const auto container = Require(Container::Open(tiny.path(), IoMode::kBuffered));
  for (const ExpertDims& dims :
       {ExpertDims{0, 0}, {-72, 40}, {71, 40}, {72, 1 << 26}, {INT64_MAX, INT64_MAX}})
    CheckNames(container->SetExpertDims(dims), Code::kCorrupt, {tiny.path(), "not possible"});
  for (const ExpertDims& dims : {ExpertDims{8, 8}, {136, 40}, {72, 104}, {1024, 2304}})
    CheckNames(container->SetExpertDims(dims), Code::kCorrupt,
               {tiny.PathOf("experts-L1.bin"), "8192", "another model"});
  BOOST_CHECK(container->SetExpertDims({72, 40}).ok());
  BOOST_TEST(container->expert_layout().record_bytes == 8192);
}

BOOST_AUTO_TEST_CASE(layers_experts_and_rows_that_do_not_exist_are_refused) {
  const TinyContainer tiny;
  const auto container = tiny.Open();
  Bytes record(8192);
  CheckNames(container->ReadRecord(0, 0, record, false), Code::kArgument, {"layer 0"});
  CheckNames(container->ReadRecord(-1, 0, record, false), Code::kArgument, {"layer -1"});
  CheckNames(container->ReadRecord(1, 4, record, false), Code::kArgument,
             {"bank 1", "4 experts", "expert 4"});
  CheckNames(container->ReadRecord(1, -1, record, false), Code::kArgument, {"expert -1"});
  CheckNames(container->ParseRecord(9, 0, record).status(), Code::kArgument, {"layer 9"});
  std::vector<float> row(40);
  const TrunkEntry& norm = container->manifest().trunk.front();
  BOOST_CHECK(container->ReadTrunkRow(norm, 0, row).ok());
  for (const int64_t r : {int64_t{-1}, int64_t{1}, INT64_MAX, INT64_MIN})
    CheckNames(container->ReadTrunkRow(norm, r, row), Code::kArgument,
               {"trunk.bin", "model.norm.weight", "has 1 rows"});
}

BOOST_AUTO_TEST_CASE(damage_inside_a_record_is_found_when_asked_for) {
  const TinyContainer tiny;
  Bytes bank = ReadFile(tiny.PathOf("experts-L1.bin"));
  bank[2 * 8192 + 5000] ^= 0x10;
  WriteFile(tiny.PathOf("experts-L1.bin"), bank);
  const auto container = tiny.Open();
  Bytes record(8192);
  BOOST_CHECK(container->ReadRecord(1, 2, record, false).ok());
  CheckNames(container->ReadRecord(1, 2, record, true), Code::kCorrupt,
             {tiny.PathOf("experts-L1.bin"), "bank 1, expert 2", "crc32"});
  BOOST_CHECK(container->ReadRecord(1, 1, record, true).ok());
}

BOOST_AUTO_TEST_CASE(record_that_changed_in_memory_is_not_parsed) {
  const TinyContainer tiny;
  const auto container = tiny.Open();
  Bytes record(8192);
  Require(container->ReadRecord(1, 2, record, true));
  BOOST_CHECK(container->ParseRecord(1, 2, record).ok());
  CheckNames(container->ParseRecord(1, 1, record).status(), Code::kCorrupt, {"expert 2"});
  CheckNames(container->ParseRecord(1, 2, std::span(record).first(4096)).status(), Code::kCorrupt,
             {"4096 bytes"});
  CheckNames(container->ParseRecord(1, 2, {}).status(), Code::kCorrupt, {"0 bytes"});
  record[25] ^= 1;
  CheckNames(container->ParseRecord(1, 2, record).status(), Code::kCorrupt, {"its parts start"});
}

BOOST_AUTO_TEST_CASE(book_of_zeros_is_refused_where_it_is_used) {
  const TinyContainer tiny;
  Bytes books = ReadFile(tiny.PathOf("codebooks.bin"));
  std::fill_n(books.begin() + 12 * 4112, 4112, uint8_t{0});
  WriteFile(tiny.PathOf("codebooks.bin"), books);
  const auto container = tiny.Open();
  Bytes record(8192);
  BOOST_CHECK(container->ReadRecord(1, 0, record, true).ok());
  CheckNames(container->ReadRecord(2, 0, record, true), Code::kCorrupt,
             {"experts-L2.bin", "bank 2, expert 0", "codebook 12"});
}

// Readers go by the record's number of the first book, not by the manifest's.
BOOST_AUTO_TEST_CASE(codebooks_are_those_that_the_record_names) {
  const TinyContainer tiny;
  EditManifest(tiny, "\"codebook_base\": 9", "\"codebook_base\": 0");
  const auto container = tiny.Open();
  Bytes record(8192);
  Require(container->ReadRecord(1, 0, record, true));
  const float* const first = Require(container->ParseRecord(1, 0, record)).gate.books[0];
  Require(container->ReadRecord(2, 0, record, true));
  const ExpertRecord second = Require(container->ParseRecord(2, 0, record));
  BOOST_TEST(second.gate.books[0] - first == 9 * 256 * 8);
  BOOST_TEST(second.up.books[0] - first == 12 * 256 * 8);
  BOOST_TEST(second.down.books[2] - first == 17 * 256 * 8);
}

BOOST_AUTO_TEST_CASE(two_stage_records_marked_vq2r_are_read) {
  TinyOptions options;
  options.codec = {IndexKind::kByte, 2, 256};
  const TinyContainer tiny(options);
  EditManifest(tiny, "VQ3R", "VQ2R");
  Bytes bank = ReadFile(tiny.PathOf("experts-L1.bin"));
  const auto container = tiny.Open();
  bank[8] = 5;  // the header is not part of the crc
  WriteFile(tiny.PathOf("experts-L1.bin"), bank);
  Bytes record(static_cast<size_t>(container->record_bytes()));
  BOOST_CHECK(container->ReadRecord(1, 0, record, true).ok());
  BOOST_CHECK(container->ParseRecord(1, 0, record).ok());
}

BOOST_AUTO_TEST_CASE(banks_are_opened_as_asked_and_the_rest_buffered) {
  const TinyContainer tiny;
  std::map<std::string, IoMode> modes;
  const auto recording = [&](bool first_bank_direct) {
    return [&modes, first_bank_direct](const std::string& path,
                                       IoMode mode) -> Result<std::unique_ptr<File>> {
      const std::string name = std::filesystem::path(path).filename().string();
      modes[name] = mode;
      WASTE_ASSIGN(std::unique_ptr<File> real, OpenFile(path, IoMode::kBuffered));
      const bool direct = name == "experts-L1.bin" ? first_bank_direct : true;
      return std::unique_ptr<File>(std::make_unique<FakeFile>(std::move(real), direct, -1));
    };
  };
  BOOST_TEST(tiny.Open(IoMode::kDirect, recording(true))->direct_io());
  BOOST_TEST(!tiny.Open(IoMode::kDirect, recording(false))->direct_io());
  BOOST_CHECK(modes.at("experts-L1.bin") == IoMode::kDirect);
  BOOST_CHECK(modes.at("experts-L2.bin") == IoMode::kDirect);
  BOOST_CHECK(modes.at("trunk.bin") == IoMode::kBuffered);
  BOOST_CHECK(modes.at("codebooks.bin") == IoMode::kBuffered);
}

BOOST_AUTO_TEST_CASE(read_error_names_bank_and_expert_and_leaves_the_container_usable) {
  const TinyContainer tiny;
  const auto failing = [](const std::string& path, IoMode mode) -> Result<std::unique_ptr<File>> {
    WASTE_ASSIGN(std::unique_ptr<File> real, OpenFile(path, mode));
    return std::unique_ptr<File>(std::make_unique<FakeFile>(std::move(real), false, 3 * 8192));
  };
  const auto container = tiny.Open(IoMode::kBuffered, failing);
  Bytes record(8192);
  CheckNames(container->ReadRecord(2, 3, record, false), Code::kIo,
             {"bank 2, expert 3", "experts-L2.bin", "the drive is gone"});
  BOOST_CHECK(container->ReadRecord(2, 2, record, true).ok());
}

BOOST_AUTO_TEST_CASE(many_threads_read_at_once) {
  TinyOptions options;
  options.experts = 16;
  const TinyContainer tiny(options);
  const auto container = tiny.Open();
  std::atomic<int32_t> failures{0};
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Bytes record(8192);
      std::vector<float> row(40);
      for (int32_t i = 0; i < 100; ++i) {
        const int32_t expert = (i + t) % 16;
        if (!container->ReadRecord(1 + i % 2, expert, record, true).ok()) ++failures;
        if (!container->ParseRecord(1 + i % 2, expert, record).ok()) ++failures;
        if (!container->ReadTrunkRow(container->manifest().trunk[0], 0, row).ok()) ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(failures == 0);
}

// Whatever one file says, opening, reading and decoding end with a value or an error.
BOOST_AUTO_TEST_CASE(mutated_containers_are_read_or_refused) {
  TinyOptions options;
  options.layers = 1;
  options.experts = 2;
  options.trunk = {{"a", TrunkFormat::kQ4G, {3, 130}}, {"b", TrunkFormat::kQ3G, {2, 40}}};
  const TinyContainer tiny(options);
  std::mt19937 random(7);
  int64_t opened = 0;
  for (const char* name :
       {"manifest.json", "trunk.bin", "codebooks.bin", "experts-L1.bin", "specials.json"}) {
    const Bytes good = ReadFile(tiny.PathOf(name));
    for (int i = 0; i < 150; ++i) {
      Bytes bytes = good;
      for (uint64_t k = random() % 3 + 1; k > 0; --k) {
        // Half of the changes hit the first bytes, where headers are.
        const size_t range = random() % 2 ? std::min<size_t>(64, bytes.size()) : bytes.size();
        bytes[random() % range] = static_cast<uint8_t>(random());
      }
      if (random() % 10 == 0) bytes.resize(random() % bytes.size());
      WriteFile(tiny.PathOf(name), bytes);
      const auto container = Container::Open(tiny.path(), IoMode::kBuffered);
      if (!container.ok() || !(*container)->SetExpertDims(options.dims).ok()) continue;
      ++opened;
      for (const TrunkEntry& entry : (*container)->manifest().trunk) {
        std::vector<float> row(static_cast<size_t>(entry.columns()));
        BOOST_REQUIRE((*container)->ReadTrunkRow(entry, entry.rows() - 1, row).ok());
      }
      for (int32_t expert = 0; expert < 2; ++expert) {
        Bytes record(static_cast<size_t>((*container)->record_bytes()));
        if (!(*container)->ReadRecord(1, expert, record, false).ok()) continue;
        const ExpertRecord parsed = Require((*container)->ParseRecord(1, expert, record));
        std::vector<float> row(72);
        DecodeExpertRow(parsed.gate, 71, std::span(row).first(40));
        DecodeExpertRow(parsed.down, 39, row);
      }
    }
    WriteFile(tiny.PathOf(name), good);
  }
  BOOST_TEST(opened > 100);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
