// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <utility>
#include <vector>

#include "base/bytes.h"

namespace waste {
namespace {

using Bytes = std::vector<uint8_t>;

BOOST_AUTO_TEST_SUITE(bytes)

BOOST_AUTO_TEST_CASE(numbers_are_written_lowest_byte_first) {
  ByteWriter writer;
  writer.U8(0x01);
  writer.U16(0x0302);
  writer.U32(0x07060504);
  writer.U64(0x0F0E0D0C0B0A0908);
  BOOST_TEST(writer.size() == 15);
  Bytes expected;
  for (uint8_t i = 1; i <= 15; ++i) expected.push_back(i);
  BOOST_TEST(std::move(writer).Take() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back) {
  ByteWriter writer;
  writer.U8(0xFF);
  writer.U16(0xFFFE);
  writer.U32(0x80000000);
  writer.U64(0xFEDCBA9876543210);
  ByteReader reader(writer.bytes());
  BOOST_TEST(reader.U8() == 0xFF);
  BOOST_TEST(reader.U16() == 0xFFFE);
  BOOST_TEST(reader.U32() == 0x80000000u);
  BOOST_TEST(reader.U64() == 0xFEDCBA9876543210u);
}

BOOST_AUTO_TEST_CASE(every_size_is_loaded_and_stored_at_any_address) {
  for (int size = 1; size <= 8; ++size) {
    for (size_t at = 0; at < 8; ++at) {
      Bytes buffer(17, 0xEE);
      const uint64_t value = 0x8877665544332211u & (~uint64_t{0} >> (64 - 8 * size));
      StoreLittle(buffer.data() + at, value, size);
      BOOST_TEST(LoadLittle(buffer.data() + at, size) == value);
      BOOST_TEST(buffer[at] == 0x11);
      BOOST_TEST(buffer[at + static_cast<size_t>(size)] == 0xEE);  // and no byte more
    }
  }
  const uint8_t two[] = {0x34, 0x12};
  BOOST_TEST(LoadU16(two) == 0x1234);
}

BOOST_AUTO_TEST_CASE(bytes_are_appended_and_padded_with_zeros) {
  ByteWriter writer;
  writer.Bytes(Bytes{9, 8});
  writer.Bytes({});
  writer.ZerosUpTo(5);
  writer.U8(7);
  const Bytes expected = {9, 8, 0, 0, 0, 7};
  BOOST_TEST(std::move(writer).Take() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
