// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32.h"

namespace waste {
namespace {

uint32_t CrcOf(std::string_view text) {
  return Crc32({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The polynomial division itself, a bit a step.
uint32_t BitByBit(std::span<const uint8_t> bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool out = ((crc ^ static_cast<uint32_t>(byte >> bit)) & 1u) != 0;
      crc >>= 1;
      if (out) crc ^= 0xEDB88320u;
    }
  }
  return crc ^ 0xFFFFFFFFu;
}

std::vector<uint8_t> RandomBytes(size_t size) {
  std::mt19937 random(static_cast<uint32_t>(size));
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

BOOST_AUTO_TEST_SUITE(crc32)

BOOST_AUTO_TEST_CASE(known_texts_have_the_crc_that_zlib_gives_them) {
  BOOST_TEST(CrcOf("") == 0u);
  BOOST_TEST(CrcOf("a") == 0xE8B7BE43u);
  BOOST_TEST(CrcOf("123456789") == 0xCBF43926u);
  BOOST_TEST(CrcOf("The quick brown fox jumps over the lazy dog") == 0x414FA339u);
  BOOST_TEST(CrcOf(std::string(32, '\0')) == 0x190A55ADu);
  BOOST_TEST(CrcOf(std::string(32, '\xFF')) == 0xFF6CAB0Bu);
}

BOOST_AUTO_TEST_CASE(every_length_agrees_with_the_division_wherever_it_is_split) {
  for (size_t size = 0; size <= 64; ++size) {
    const auto bytes = RandomBytes(size);
    const uint32_t expected = BitByBit(bytes);
    for (size_t split = 0; split <= size; ++split) {
      const std::span all(bytes);
      BOOST_REQUIRE_EQUAL(Crc32(all.subspan(split), Crc32(all.first(split))), expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(any_flipped_bit_changes_it) {
  auto bytes = RandomBytes(100);
  const uint32_t before = Crc32(bytes);
  for (size_t bit = 0; bit < 800; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    BOOST_REQUIRE_NE(Crc32(bytes), before);
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
