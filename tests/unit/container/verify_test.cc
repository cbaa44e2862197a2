// SPDX-License-Identifier: Apache-2.0

#include "container/verify.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "base/bytes.h"
#include "base/crc32.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

TinyOptions AllFormats() {
  TinyOptions options;
  options.trunk = {{"a.f32", TrunkFormat::kF32, {2, 40}},
                   {"b.f16", TrunkFormat::kF16, {2, 40}},
                   {"c.q8", TrunkFormat::kQ8G, {2, 130}},
                   {"d.q4", TrunkFormat::kQ4G, {2, 130}},
                   {"e.q3", TrunkFormat::kQ3G, {2, 130}}};
  return options;
}

// Overwrites `size` bytes at `at` of a file.
void Poke(const std::string& path, int64_t at, uint64_t value, int size) {
  uint8_t bytes[8];
  StoreLittle(bytes, value, size);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file.write(reinterpret_cast<const char*>(bytes), size);
}

Status VerifyStatus(const TinyContainer& tiny) {
  Progress progress;
  return VerifyContainer(*tiny.Open(), progress);
}

void CheckNames(const Status& status, Code code, const std::vector<std::string>& words) {
  BOOST_TEST_CONTEXT(status.message()) {
    BOOST_CHECK(status.code() == code);
    for (const std::string& word : words) BOOST_TEST_CONTEXT(word) {
        BOOST_CHECK(status.message().find(word) != std::string::npos);
      }
  }
}

BOOST_AUTO_TEST_SUITE(verify)

BOOST_AUTO_TEST_CASE(sound_container_passes_and_progress_counts_its_bytes) {
  const TinyContainer tiny(AllFormats());
  const auto container = tiny.Open();
  Progress progress;
  const Status status = VerifyContainer(*container, progress);
  BOOST_CHECK_MESSAGE(status.ok(), status.message());
  BOOST_TEST(progress.total() == container->total_bytes());
  BOOST_TEST(progress.done() == progress.total());
  const auto line = progress.NextLine();
  BOOST_REQUIRE(line.has_value());
  BOOST_TEST(line->find("trunk.bin has no checksum") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(container_without_experts_passes) {
  TinyOptions options = AllFormats();
  options.layers = 0;
  BOOST_CHECK(VerifyStatus(TinyContainer(options)).ok());
}

BOOST_AUTO_TEST_CASE(missing_rank_file_is_named) {
  TinyOptions options;
  options.rank_file = "";
  CheckNames(VerifyStatus(TinyContainer(options)), Code::kCorrupt, {"tokenizer.model"});
}

BOOST_AUTO_TEST_CASE(trunk_values_and_scales_that_are_not_finite_are_found) {
  const TinyContainer sound(AllFormats());
  const auto trunk = sound.Open()->manifest().trunk;
  struct {
    size_t tensor;
    int64_t at;  // in bytes after the tensor's offset, or after its scales'
    uint64_t value;
    int size;
    const char* words;
  } const kCases[] = {
      {0, 4 * 79, 0x7F800000, 4, "\"a.f32\": value 79"},
      {0, 0, 0xFFC00000, 4, "\"a.f32\": value 0"},
      {1, 2 * 41, 0xFC00, 2, "\"b.f16\": value 41"},
      {1, 0, 0x7C01, 2, "\"b.f16\": value 0"},
      {2, 2 * 3, 0x7C00, 2, "\"c.q8\": scale 3"},
      {3, 0, 0x7E00, 2, "\"d.q4\": scale 0"},
      {4, 2 * 2, 0xFE00, 2, "\"e.q3\": scale 2"},
  };
  for (const auto& c : kCases) {
    const TinyContainer tiny(AllFormats());
    const TrunkEntry& entry = trunk[c.tensor];
    const int64_t base = IsQuantised(entry.format) ? entry.scale_offset : entry.offset;
    Poke(tiny.PathOf("trunk.bin"), base + c.at, c.value, c.size);
    CheckNames(VerifyStatus(tiny), Code::kCorrupt, {tiny.PathOf("trunk.bin"), c.words});
  }
}

BOOST_AUTO_TEST_CASE(damaged_records_are_found_by_name) {
  struct {
    int64_t at;  // in expert 3
    Code code;
    const char* words;
  } const kCases[] = {{0, Code::kFormat, "no expert record"},
                      {6, Code::kCorrupt, "the record says layer 2, expert"},
                      {48, Code::kCorrupt, "crc32"},
                      {5000, Code::kCorrupt, "crc32"},
                      {8191, Code::kCorrupt, "byte 8191 of its padding"}};
  for (const auto& c : kCases) {
    const TinyContainer tiny;
    Poke(tiny.PathOf("experts-L2.bin"), 3 * 8192 + c.at, 0xA5, 1);
    CheckNames(VerifyStatus(tiny), c.code,
               {tiny.PathOf("experts-L2.bin"), "bank 2, expert 3", c.words});
  }
}

BOOST_AUTO_TEST_CASE(scale_that_is_not_finite_is_found_even_with_a_good_crc) {
  const TinyContainer tiny;
  const auto layout = tiny.Open()->expert_layout();
  std::vector<uint8_t> bank = Require(ReadWholeFile(tiny.PathOf("experts-L1.bin"), 1 << 20));
  const std::span<uint8_t> record = std::span(bank).subspan(8192, 8192);
  StoreLittle(&record[layout.down_scales_at() + 2], 0x7C00, 2);
  const uint32_t crc = Crc32(record.subspan(48, layout.end - 48));
  Poke(tiny.PathOf("experts-L1.bin"), 8192 + layout.down_scales_at() + 2, 0x7C00, 2);
  Poke(tiny.PathOf("experts-L1.bin"), 8192 + 36, crc, 4);
  CheckNames(VerifyStatus(tiny), Code::kCorrupt, {"bank 1, expert 1", "scale 145 is not finite"});
}

BOOST_AUTO_TEST_CASE(cancelled_work_says_so) {
  const TinyContainer tiny;
  Progress progress;
  progress.Cancel();
  BOOST_CHECK(VerifyContainer(*tiny.Open(), progress).code() == Code::kCancelled);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
