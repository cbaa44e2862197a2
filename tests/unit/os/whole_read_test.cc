// SPDX-License-Identifier: Apache-2.0

#include "os/whole_read.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

#include "base/aligned_buffer.h"

namespace waste {
namespace {

// A file of `size` bytes whose calls give at most `most`, and nothing in every second one.
struct Calls {
  int64_t size;
  int64_t most;
  int64_t count = 0;
  int64_t fail_at = -1;

  ReadSome Reader() {
    return [this](int64_t offset, std::span<uint8_t> out) -> int64_t {
      if (++count == fail_at) return -5;
      if (count % 2 == 0) return kReadInterrupted;
      const int64_t left = std::max(size - offset, int64_t{0});
      const int64_t given = std::min({left, most, static_cast<int64_t>(out.size())});
      for (int64_t i = 0; i < given; ++i) out[i] = ByteAt(offset + i);
      return given;
    };
  }
  static uint8_t ByteAt(int64_t offset) { return static_cast<uint8_t>(offset * 2654435761u >> 13); }
};

bool IsRange(std::span<const uint8_t> bytes, int64_t offset) {
  for (const uint8_t byte : bytes)
    if (byte != Calls::ByteAt(offset++)) return false;
  return true;
}

BOOST_AUTO_TEST_SUITE(whole_read)

BOOST_AUTO_TEST_CASE(short_and_interrupted_calls_make_up_the_range) {
  for (const int64_t most : {1, 7, 100, 5000}) {
    Calls calls{10'000, most};
    std::vector<uint8_t> out(3000);
    BOOST_TEST(ReadWhole("f", 10'000, false, 777, out, calls.Reader()).ok());
    BOOST_TEST(IsRange(out, 777));
  }
}

BOOST_AUTO_TEST_CASE(direct_reads_go_on_at_a_block) {
  for (const int64_t most : {int64_t{4096}, int64_t{4097}, int64_t{8191}, int64_t{9000}}) {
    Calls calls{16 * 4096, most};
    auto out = AlignedBuffer::Allocate(8 * 4096);
    bool aligned = true;
    const ReadSome read = calls.Reader();
    const ReadSome checked = [&](int64_t offset, std::span<uint8_t> part) {
      aligned = aligned && offset % 4096 == 0 && part.size() % 4096 == 0;
      return read(offset, part);
    };
    BOOST_TEST(ReadWhole("f", 16 * 4096, true, 4096, out->bytes(), checked).ok());
    BOOST_TEST(aligned);
    BOOST_TEST(IsRange(out->bytes(), 4096));
  }
}

BOOST_AUTO_TEST_CASE(a_direct_read_that_gets_no_block_ends) {
  Calls calls{16 * 4096, 512};
  auto out = AlignedBuffer::Allocate(8192);
  BOOST_CHECK(ReadWhole("f", 16 * 4096, true, 0, out->bytes(), calls.Reader()).code() ==
              Code::kCorrupt);
}

BOOST_AUTO_TEST_CASE(a_file_that_has_become_shorter_is_corrupt) {
  Calls calls{2000, 700};
  std::vector<uint8_t> out(3000);
  const Status status = ReadWhole("f", 10'000, false, 500, out, calls.Reader());
  BOOST_CHECK(status.code() == Code::kCorrupt);
  BOOST_TEST(status.message() ==
             "f: had 10000 bytes when opened and now ends at 2000, inside 3000 bytes at 500");
}

BOOST_AUTO_TEST_CASE(what_the_system_refuses_is_not_tried_again) {
  Calls calls{10'000, 700};
  calls.fail_at = 3;
  std::vector<uint8_t> out(3000);
  const Status status = ReadWhole("f", 10'000, false, 0, out, calls.Reader());
  BOOST_CHECK(status.code() == Code::kIo);
  BOOST_TEST(status.message().starts_with("f: cannot read 3000 bytes at 0: "));
  BOOST_TEST(calls.count == 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
