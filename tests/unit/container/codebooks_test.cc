// SPDX-License-Identifier: Apache-2.0

#include "container/codebooks.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "base/bytes.h"
#include "base/half.h"

namespace waste {
namespace {

constexpr int64_t kEntries = 64;
constexpr size_t kRecord = 16 + 64 * 16;

// Three books by hand, from the format's page; the value i of book b is the half 0x2000 + 512 b +
// i.
std::vector<uint8_t> GoodFile() {
  ByteWriter out;
  for (uint16_t book = 0; book < 3; ++book) {
    out.U32(0x4B424357);
    out.U16(book);
    out.U8(4);
    out.U8(8);
    out.U32(kEntries);
    out.U32(0);
    for (int i = 0; i < kEntries * 8; ++i) out.U16(static_cast<uint16_t>(0x2000 + 512 * book + i));
  }
  return std::move(out).Take();
}

Status StatusOf(const std::vector<uint8_t>& bytes, int64_t entries = kEntries) {
  return ParseCodebooks(bytes, entries, "codebooks.bin").status();
}

BOOST_AUTO_TEST_SUITE(codebooks)

BOOST_AUTO_TEST_CASE(a_book_of_256_entries_has_the_size_of_the_page) {
  BOOST_TEST(CodebookRecordBytes(256) == 4112);
}

BOOST_AUTO_TEST_CASE(values_are_decoded_in_order) {
  const auto books = ParseCodebooks(GoodFile(), kEntries, "f");
  BOOST_REQUIRE_MESSAGE(books.ok(), books.status().message());
  BOOST_TEST(books->count() == 3);
  for (int64_t book = 0; book < 3; ++book)
    for (int64_t i = 0; i < kEntries * 8; ++i)
      BOOST_REQUIRE_EQUAL(books->book(book)[i],
                          HalfToFloat(static_cast<uint16_t>(0x2000 + 512 * book + i)));
  BOOST_TEST(books->FindGap(0, 3) == -1);
}

BOOST_AUTO_TEST_CASE(subnormal_values_are_not_flushed) {
  auto bytes = GoodFile();
  StoreLittle(&bytes[16], 0x0001, 2);
  StoreLittle(&bytes[18], 0x83FF, 2);
  const auto books = ParseCodebooks(bytes, kEntries, "f");
  BOOST_REQUIRE(books.ok());
  BOOST_TEST(books->book(0)[0] == 0x1p-24f);
  BOOST_TEST(books->book(0)[1] == -0x3FFp-24f);
}

BOOST_AUTO_TEST_CASE(each_broken_field_has_its_own_error) {
  struct {
    size_t at;
    uint64_t value;
    int size;
    Code code;
    const char* words;
  } const kCases[] = {
      {0, 0x12345678, 4, Code::kFormat, "no codebook here"},
      {0, 0, 4, Code::kFormat, "no codebook here"},
      {4, 2, 2, Code::kCorrupt, "its header says 2"},
      {6, 8, 1, Code::kUnsupported, "format 8"},
      {7, 4, 1, Code::kCorrupt, "64 entries of 4 values"},
      {8, 256, 4, Code::kCorrupt, "256 entries of 8 values, where the manifest says 64"},
      {8, 0, 4, Code::kCorrupt, "0 entries"},
      {12, 1, 4, Code::kUnsupported, "reserved 1"},
      {16, 0x7C00, 2, Code::kCorrupt, "entry 0 is not finite"},
      {16 + 17 * 16, 0xFE00, 2, Code::kCorrupt, "entry 17 is not finite"},
  };
  for (const auto& c : kCases) {
    auto bytes = GoodFile();
    StoreLittle(&bytes[kRecord + c.at], c.value, c.size);
    const Status status = StatusOf(bytes);
    BOOST_TEST_CONTEXT("offset " << c.at << " value " << c.value << ": " << status.message()) {
      BOOST_CHECK(status.code() == c.code);
      BOOST_CHECK(status.message().find("codebooks.bin: book 1") == 0);
      BOOST_CHECK(status.message().find(c.words) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(gap_is_noticed_and_half_a_gap_refused) {
  auto bytes = GoodFile();
  for (size_t i = kRecord; i < 2 * kRecord; ++i) bytes[i] = 0;
  const auto books = ParseCodebooks(bytes, kEntries, "f");
  BOOST_REQUIRE_MESSAGE(books.ok(), books.status().message());
  BOOST_TEST(books->FindGap(0, 1) == -1);
  BOOST_TEST(books->FindGap(0, 3) == 1);
  BOOST_TEST(books->FindGap(1, 1) == 1);
  BOOST_TEST(books->FindGap(2, 1) == -1);
  bytes[2 * kRecord - 1] = 1;
  BOOST_CHECK(StatusOf(bytes).code() == Code::kFormat);
}

BOOST_AUTO_TEST_CASE(only_whole_books_are_accepted) {
  for (const size_t size : {size_t{1}, size_t{15}, size_t{16}, kRecord - 1, kRecord + 1,
                            2 * kRecord + 16, 3 * kRecord - 2}) {
    auto bytes = GoodFile();
    bytes.resize(size);
    BOOST_TEST_CONTEXT(size) { BOOST_CHECK(StatusOf(bytes).code() == Code::kCorrupt); }
  }
  BOOST_CHECK(StatusOf({}).ok());
  BOOST_CHECK(!StatusOf(GoodFile(), 256).ok());
}

BOOST_AUTO_TEST_CASE(written_book_is_the_one_made_by_hand) {
  const auto good = GoodFile();
  for (int64_t number = 0; number < 3; ++number) {
    std::vector<float> values;
    for (int i = 0; i < kEntries * 8; ++i)
      values.push_back(HalfToFloat(static_cast<uint16_t>(0x2000 + 512 * number + i)));
    const auto record = EncodeCodebook(number, values);
    BOOST_REQUIRE(record.ok());
    const auto expected = std::span(good).subspan(number * kRecord, kRecord);
    BOOST_CHECK(std::equal(record->begin(), record->end(), expected.begin(), expected.end()));
  }
}

BOOST_AUTO_TEST_CASE(number_of_a_book_is_written_modulo_65536) {
  const auto record = EncodeCodebook(65537, std::vector<float>(kEntries * 8));
  BOOST_REQUIRE(record.ok());
  BOOST_TEST(LoadU16(&(*record)[4]) == 1);
}

BOOST_AUTO_TEST_CASE(value_that_does_not_fit_f16_is_not_written) {
  for (const float value : {65520.0f, -1e6f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(kEntries * 8);
    values[100] = value;
    BOOST_CHECK(EncodeCodebook(7, values).status().code() == Code::kUnsupported);
  }
}

BOOST_AUTO_TEST_CASE(mutated_files_give_finite_values_or_an_error) {
  std::mt19937 random(2);
  int64_t accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    auto bytes = GoodFile();
    for (uint64_t k = random() % 3 + 1; k > 0; --k)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const auto books = ParseCodebooks(bytes, kEntries, "f");
    if (!books.ok()) continue;
    ++accepted;
    BOOST_REQUIRE_EQUAL(books->values.size(), static_cast<size_t>(books->count() * kEntries * 8));
    for (const float value : books->values) BOOST_REQUIRE(std::isfinite(value));
  }
  BOOST_TEST(accepted > 1000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
