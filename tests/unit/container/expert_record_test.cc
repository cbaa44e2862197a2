// SPDX-License-Identifier: Apache-2.0

#include "container/expert_record.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "base/crc32.h"

namespace waste {
namespace {

// gate and up take 384 bytes each, down 192, the scales 64: all in the first 4 KiB. (The matrices
// have 8 and 16 rows; a block has 64.)
constexpr ExpertDims kDims{.inner = 8, .outer = 16};
constexpr ExpertCodec kVq3{.kind = IndexKind::kByte, .stages = 3, .entries = 256};
constexpr ExpertCodec kVq4p{.kind = IndexKind::kPacked6, .stages = 4, .entries = 64};
constexpr int64_t kCodebookCount = 18;

void Put(std::vector<uint8_t>& record, size_t at, uint64_t value, int size) {
  StoreLittle(&record[at], value, size);
}

// Written by hand, from the format's page.
std::vector<uint8_t> GoodRecord() {
  std::vector<uint8_t> record(4096);
  Put(record, 0, kExpertMagic, 4);
  Put(record, 4, 3, 2);    // layer
  Put(record, 6, 5, 2);    // expert
  Put(record, 8, 4, 1);    // VQ3R
  Put(record, 10, 9, 2);   // first codebook
  Put(record, 16, 1, 4);   // pages
  Put(record, 20, 48, 4);  // gate, up, down, scales
  Put(record, 24, 432, 4);
  Put(record, 28, 816, 4);
  Put(record, 32, 1008, 4);
  for (size_t i = 48; i < 1072; ++i) record[i] = static_cast<uint8_t>(i * 37);
  Put(record, 36, Crc32(std::span(record).subspan(48, 1072 - 48)), 4);
  return record;
}

ExpertLayout Layout(const ExpertCodec& codec = kVq3) {
  return MakeExpertLayout(codec, kDims).value();
}

Status StatusOf(const std::vector<uint8_t>& record, const ExpertCodec& codec = kVq3,
                int64_t codebook_count = kCodebookCount) {
  return ParseExpertHeader(record, 3, 5, Layout(codec), codebook_count).status();
}

BOOST_AUTO_TEST_SUITE(expert_record)

BOOST_AUTO_TEST_CASE(records_of_the_two_models_have_the_sizes_of_the_page) {
  const auto k3 = MakeExpertLayout(kVq3, {.inner = 3072, .outer = 3584});
  BOOST_REQUIRE(k3.has_value());
  BOOST_TEST(k3->up_at - k3->gate_at == 4128768);
  BOOST_TEST(k3->scales_at - k3->down_at == 4128768);
  BOOST_TEST(k3->end == 12405808);
  BOOST_TEST(k3->record_bytes == 12406784);
  const auto kimi_linear = MakeExpertLayout(kVq3, {.inner = 1024, .outer = 2304});
  BOOST_REQUIRE(kimi_linear.has_value());
  BOOST_TEST(kimi_linear->end == 2662960);
  BOOST_TEST(kimi_linear->record_bytes == 2666496);
}

BOOST_AUTO_TEST_CASE(layout_follows_the_bytes_of_a_vector) {
  struct {
    ExpertCodec codec;
    int64_t bytes_per_vector;
  } const kCases[] = {{{IndexKind::kByte, 2, 256}, 2},
                      {{IndexKind::kByte, 3, 256}, 3},
                      {{IndexKind::kByte, 4, 256}, 4},
                      {{IndexKind::kByte, 6, 256}, 6},
                      {{IndexKind::kPacked6, 4, 64}, 3}};
  for (const auto& c : kCases) {
    const auto layout = MakeExpertLayout(c.codec, {.inner = 72, .outer = 40});
    BOOST_REQUIRE(layout.has_value());
    BOOST_TEST(layout->gate_at == 48);
    BOOST_TEST(layout->up_at == 48 + 128 * 5 * c.bytes_per_vector);
    BOOST_TEST(layout->down_at == 48 + 2 * 128 * 5 * c.bytes_per_vector);
    BOOST_TEST(layout->scales_at == layout->down_at + 64 * 9 * c.bytes_per_vector);
    BOOST_TEST(layout->up_scales_at() == layout->scales_at + 144);
    BOOST_TEST(layout->down_scales_at() == layout->scales_at + 288);
    BOOST_TEST(layout->end == layout->scales_at + 368);
    BOOST_TEST(layout->record_bytes % 4096 == 0);
    BOOST_TEST(layout->record_bytes - layout->end < 4096);
  }
}

BOOST_AUTO_TEST_CASE(impossible_shapes_have_no_layout) {
  const int64_t most = int64_t{1} << 26;
  for (const ExpertDims& dims : {ExpertDims{0, 8},
                                 {8, 0},
                                 {-8, 8},
                                 {8, -8},
                                 {12, 8},
                                 {8, 12},
                                 {most + 8, 8},
                                 {8, most + 8},
                                 {most, most},
                                 {65536, 65536},
                                 {INT64_MAX, INT64_MAX},
                                 {INT64_MIN, 8}})
    BOOST_TEST_CONTEXT(dims.inner << " x " << dims.outer) {
      BOOST_CHECK(!MakeExpertLayout(kVq3, dims));
    }
}

BOOST_AUTO_TEST_CASE(good_record_is_read_field_by_field) {
  const auto header = ParseExpertHeader(GoodRecord(), 3, 5, Layout(), kCodebookCount);
  BOOST_REQUIRE_MESSAGE(header.ok(), header.status().message());
  BOOST_TEST(header->first_codebook == 9);
  const auto record = GoodRecord();
  BOOST_TEST(header->crc == Crc32(std::span(record).subspan(48, 1072 - 48)));
  BOOST_CHECK(CheckExpertCrc(GoodRecord(), 3, 5, Layout(), *header).ok());
}

BOOST_AUTO_TEST_CASE(written_header_is_the_one_made_by_hand) {
  std::vector<uint8_t> record = GoodRecord();
  for (size_t i = 0; i < 48; ++i) record[i] = 0xEE;
  WriteExpertHeader(3, 5, 9, Layout(), record);
  BOOST_TEST(record == GoodRecord(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(record_of_another_expert_or_layer_is_refused_by_name) {
  const auto expert = ParseExpertHeader(GoodRecord(), 3, 6, Layout(), kCodebookCount);
  BOOST_REQUIRE(!expert.ok());
  BOOST_CHECK(expert.status().code() == Code::kCorrupt);
  BOOST_TEST(expert.status().message() ==
             "bank 3, expert 6: the record says layer 3, expert 5; copy the file again");
  const auto layer = ParseExpertHeader(GoodRecord(), 4, 5, Layout(), kCodebookCount);
  BOOST_CHECK(layer.status().code() == Code::kCorrupt);
}

BOOST_AUTO_TEST_CASE(each_broken_field_has_its_own_error) {
  struct {
    size_t at;
    uint64_t value;
    int size;
    Code code;
    const char* words;
  } const kCases[] = {
      {0, 0x12345678, 4, Code::kFormat, "no expert record"},
      {0, 0, 4, Code::kFormat, "no expert record"},
      {8, 7, 1, Code::kUnsupported, "format 7"},
      {8, 0, 1, Code::kUnsupported, "format 0"},
      {8, 8, 1, Code::kCorrupt, "indices have 8 bits"},  // VQ4P in a container of VQ3R
      {9, 1, 1, Code::kUnsupported, "flags 1"},
      {9, 2, 1, Code::kUnsupported, "flags 2"},
      {9, 4, 1, Code::kUnsupported, "flags 4"},
      {10, 10, 2, Code::kCorrupt, "9 codebooks from 10 on, of 18"},
      {10, 65535, 2, Code::kCorrupt, "9 codebooks from 65535 on"},
      {12, 1, 2, Code::kUnsupported, "low-rank part 1"},
      {14, 1, 2, Code::kUnsupported, "reserved 1"},
      {16, 0, 4, Code::kCorrupt, "0 blocks"},
      {16, 2, 4, Code::kCorrupt, "2 blocks"},
      {16, 0xFFFFFFFF, 4, Code::kCorrupt, "4294967295 blocks"},
      {20, 0, 4, Code::kCorrupt, "start at 0,"},  // gate on top of the header
      {20, 49, 4, Code::kCorrupt, "start at 49,"},
      {24, 48, 4, Code::kCorrupt, "start at 48, 48,"},  // up on top of gate
      {28, 432, 4, Code::kCorrupt, "start at 48, 432, 432"},
      {28, 817, 4, Code::kCorrupt, "817"},
      {32, 4092, 4, Code::kCorrupt, "4092"},  // scales leave the record
      {32, 1010, 4, Code::kCorrupt, "1010"},
      {32, 0xFFFFFFFF, 4, Code::kCorrupt, "4294967295"},
      {40, 1, 4, Code::kUnsupported, "reserved 1"},
      {44, 0x80000000, 4, Code::kUnsupported, "reserved 2147483648"},
  };
  for (const auto& c : kCases) {
    auto record = GoodRecord();
    Put(record, c.at, c.value, c.size);
    const Status status = StatusOf(record);
    BOOST_TEST_CONTEXT("offset " << c.at << " value " << c.value << ": " << status.message()) {
      BOOST_CHECK(status.code() == c.code);
      BOOST_CHECK(status.message().find("bank 3, expert 5: ") == 0);
      BOOST_CHECK(status.message().find(c.words) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(byte_indices_are_accepted_as_vq3r_and_vq2r) {
  auto record = GoodRecord();
  Put(record, 8, 5, 1);
  BOOST_CHECK(StatusOf(record).ok());
  BOOST_CHECK(StatusOf(record, kVq4p).code() == Code::kCorrupt);
  // Both have three bytes a vector, so nothing but the format field tells them apart.
  Put(record, 8, 8, 1);
  BOOST_CHECK(StatusOf(record, kVq4p, 21).ok());
  BOOST_CHECK(StatusOf(record, kVq4p, 20).code() == Code::kCorrupt);  // 9 + 12 books are needed
}

BOOST_AUTO_TEST_CASE(record_of_any_other_size_is_refused) {
  for (const size_t size : {0u, 1u, 3u, 47u, 48u, 1072u, 4000u, 4095u, 4097u, 8192u}) {
    auto record = GoodRecord();
    record.resize(size);
    BOOST_TEST_CONTEXT(size) { BOOST_CHECK(StatusOf(record).code() == Code::kCorrupt); }
  }
}

BOOST_AUTO_TEST_CASE(crc_covers_the_parts_and_nothing_else) {
  const auto header = ParseExpertHeader(GoodRecord(), 3, 5, Layout(), kCodebookCount);
  BOOST_REQUIRE(header.ok());
  for (const size_t at : {48u, 600u, 1071u}) {
    auto record = GoodRecord();
    record[at] ^= 1;
    const Status status = CheckExpertCrc(record, 3, 5, Layout(), *header);
    BOOST_CHECK(status.code() == Code::kCorrupt);
    BOOST_CHECK(status.message().find("bank 3, expert 5: crc32") == 0);
  }
  for (const size_t at : {47u, 1072u, 4095u}) {
    auto record = GoodRecord();
    record[at] ^= 1;
    BOOST_CHECK(CheckExpertCrc(record, 3, 5, Layout(), *header).ok());
  }
}

BOOST_AUTO_TEST_CASE(random_headers_never_pass_with_other_books_or_bytes) {
  std::mt19937 random(1);
  int64_t accepted = 0;
  for (int i = 0; i < 100000; ++i) {
    auto record = GoodRecord();
    for (uint64_t k = random() % 3 + 1; k > 0; --k)
      record[random() % 48] = static_cast<uint8_t>(random());
    const auto header = ParseExpertHeader(record, 3, 5, Layout(), kCodebookCount);
    if (!header.ok()) continue;
    ++accepted;
    BOOST_REQUIRE(header->first_codebook + 9 <= kCodebookCount);
    record[8] = 4;   // or 5
    record[10] = 9;  // or any book that exists
    const auto good = GoodRecord();
    for (size_t at = 36; at < 40; ++at) record[at] = good[at];  // the crc is checked elsewhere
    BOOST_REQUIRE(record == good);
  }
  BOOST_TEST(accepted > 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
