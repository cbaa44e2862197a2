// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/half.h"
#include "quant/trunk_format.h"

namespace waste {
namespace {

constexpr TrunkFormat kFormats[] = {TrunkFormat::kF32, TrunkFormat::kF16, TrunkFormat::kQ8G,
                                    TrunkFormat::kQ4G, TrunkFormat::kQ3G};

struct Encoded {
  TrunkFormat format;
  int64_t columns;
  std::vector<uint8_t> payload;
  std::vector<uint8_t> scales;

  TrunkMatrix matrix() const {
    return {.format = format,
            .rows = 1,
            .columns = columns,
            .payload = payload.data(),
            .scales = scales.empty() ? nullptr : scales.data()};
  }
};

// Buffers start as 0xAA, so that a byte which is not written shows.
Encoded Blank(TrunkFormat format, int64_t columns) {
  const int64_t scale_bytes = IsQuantised(format) ? 2 * TrunkRowGroups(columns) : 0;
  return {format, columns, std::vector<uint8_t>(TrunkRowBytes(format, columns), 0xAA),
          std::vector<uint8_t>(scale_bytes, 0xAA)};
}

Encoded Encode(TrunkFormat format, const std::vector<float>& row) {
  Encoded encoded = Blank(format, static_cast<int64_t>(row.size()));
  const Status status = EncodeTrunkRow(format, row, encoded.payload, encoded.scales);
  BOOST_REQUIRE_MESSAGE(status.ok(), status.message());
  return encoded;
}

Status StatusOf(TrunkFormat format, const std::vector<float>& row) {
  Encoded encoded = Blank(format, static_cast<int64_t>(row.size()));
  return EncodeTrunkRow(format, row, encoded.payload, encoded.scales);
}

std::vector<float> Decode(const Encoded& encoded) {
  std::vector<float> out(encoded.columns, -99.0f);
  DecodeTrunkRow(encoded.matrix(), 0, out);
  return out;
}

// Values in [-1.5, 1.5) that any language repeats exactly: a 32-bit congruential generator, its
// upper 24 bits as a fraction.
std::vector<float> Series(int64_t size) {
  std::vector<float> values(size);
  uint32_t state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<float>(state >> 8) * 0x1p-24f - 0.5f) * 3.0f;
  }
  return values;
}

BOOST_AUTO_TEST_SUITE(trunk_format)

BOOST_AUTO_TEST_CASE(formats_are_known_by_their_numbers_and_no_others) {
  const std::vector<int64_t> known = {0, 1, 2, 3, 7};
  for (int64_t number = -3; number < 300; ++number) {
    const bool expected = std::find(known.begin(), known.end(), number) != known.end();
    BOOST_TEST(IsTrunkFormat(number) == expected, "format " << number);
  }
  BOOST_TEST(!IsTrunkFormat(int64_t{1} << 32));  // must not be cut to 0
  BOOST_TEST(TrunkFormatName(TrunkFormat::kQ3G) == std::string("Q3G"));
}

BOOST_AUTO_TEST_CASE(row_sizes_follow_the_format_page) {
  struct Case {
    int64_t columns, f32, f16, q8g, q4g, q3g, groups;
  };
  const Case cases[] = {{1, 4, 2, 128, 64, 49, 1},
                        {128, 512, 256, 128, 64, 49, 1},
                        {129, 516, 258, 256, 128, 97, 2},
                        {7168, 28672, 14336, 7168, 3584, 2689, 56}};
  for (const Case& c : cases) {
    BOOST_TEST(TrunkRowBytes(TrunkFormat::kF32, c.columns) == c.f32);
    BOOST_TEST(TrunkRowBytes(TrunkFormat::kF16, c.columns) == c.f16);
    BOOST_TEST(TrunkRowBytes(TrunkFormat::kQ8G, c.columns) == c.q8g);
    BOOST_TEST(TrunkRowBytes(TrunkFormat::kQ4G, c.columns) == c.q4g);
    BOOST_TEST(TrunkRowBytes(TrunkFormat::kQ3G, c.columns) == c.q3g);
    BOOST_TEST(TrunkRowGroups(c.columns) == c.groups);
  }
}

BOOST_AUTO_TEST_CASE(q8g_stores_signed_bytes) {
  const Encoded encoded = Encode(TrunkFormat::kQ8G, {127.0f, -127.0f, 1.0f, -1.0f});
  BOOST_TEST(LoadU16(encoded.scales.data()) == 0x3C00);  // 127 / 127
  const std::vector<uint8_t> expected = {0x7F, 0x81, 0x01, 0xFF, 0x00};
  BOOST_TEST(std::vector<uint8_t>(encoded.payload.begin(), encoded.payload.begin() + 5) == expected,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(q4g_stores_the_low_nibble_first_and_pads_with_zero_weights) {
  const Encoded encoded = Encode(TrunkFormat::kQ4G, {7.0f, -7.0f, 1.0f, -1.0f, 3.0f});
  BOOST_TEST(LoadU16(encoded.scales.data()) == 0x3C00);
  const std::vector<uint8_t> expected = {0x1F, 0x79, 0x8B, 0x88};  // q + 8
  BOOST_TEST(std::vector<uint8_t>(encoded.payload.begin(), encoded.payload.begin() + 4) == expected,
             boost::test_tools::per_element());
  BOOST_TEST(encoded.payload.back() == 0x88);
}

BOOST_AUTO_TEST_CASE(q3g_packs_three_bits_lowest_first_and_ends_with_a_zero_byte) {
  // q + 4 is 7 1 5 3 6 2 4 4: bits 111 100 101 110 011 010 001 001 from the lowest.
  const Encoded encoded =
      Encode(TrunkFormat::kQ3G, {3.0f, -3.0f, 1.0f, -1.0f, 2.0f, -2.0f, 0.0f, 0.0f});
  BOOST_TEST(LoadU16(encoded.scales.data()) == 0x3C00);
  const std::vector<uint8_t> expected = {0x4F, 0x67, 0x91};
  BOOST_TEST(std::vector<uint8_t>(encoded.payload.begin(), encoded.payload.begin() + 3) == expected,
             boost::test_tools::per_element());
  BOOST_TEST(encoded.payload.size() == 49u);
  BOOST_TEST(encoded.payload[47] == 0x92);  // 4 4 4 ...
  BOOST_TEST(encoded.payload[48] == 0x00);
}

BOOST_AUTO_TEST_CASE(halves_round_to_the_even_integer) {
  // The largest magnitude makes the scale 1 in each format.
  const struct {
    TrunkFormat format;
    float largest;
  } cases[] = {{TrunkFormat::kQ8G, 127}, {TrunkFormat::kQ4G, 7}, {TrunkFormat::kQ3G, 3}};
  for (const auto& c : cases) {
    const std::vector<float> row = Decode(Encode(
        c.format, {c.largest, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49999997f, 0.50000006f}));
    const std::vector<float> expected = {c.largest, 0, 2, 2, 0, -2, -2, 0, 1};
    BOOST_TEST(row == expected, boost::test_tools::per_element());
  }
}

// Sizes, crc32 of the payload and f16 scales as computed with torch 2.13: x.abs().amax(-1)
// .clamp(min=1e-8) / hi, (x / s).round().clamp(lo, hi), packed as one big integer in Python.
BOOST_AUTO_TEST_CASE(bytes_agree_with_an_independent_encoder) {
  const struct {
    int64_t columns;
    TrunkFormat format;
    uint32_t crc;
    std::vector<uint16_t> scales;
  } cases[] = {
      {1, TrunkFormat::kQ8G, 0x629be7b8, {0x21cd}},
      {1, TrunkFormat::kQ4G, 0x89d766e1, {0x3294}},
      {1, TrunkFormat::kQ3G, 0xc3ad4cd4, {0x37ac}},
      {130, TrunkFormat::kQ8G, 0xfc630a45, {0x220c, 0x20e0}},
      {130, TrunkFormat::kQ4G, 0x5f04a1bf, {0x32db, 0x3187}},
      {130, TrunkFormat::kQ3G, 0xb2c3795d, {0x3800, 0x3673}},
      {300, TrunkFormat::kQ8G, 0xeb2dfbe8, {0x220c, 0x2208, 0x2169}},
      {300, TrunkFormat::kQ4G, 0x7bf3cef9, {0x32db, 0x32d7, 0x3223}},
      {300, TrunkFormat::kQ3G, 0x294b7dbc, {0x3800, 0x37fb, 0x3729}},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(TrunkFormatName(c.format) << " of " << c.columns) {
      const Encoded encoded = Encode(c.format, Series(c.columns));
      BOOST_TEST(Crc32(encoded.payload) == c.crc);
      for (size_t g = 0; g < c.scales.size(); ++g) {
        BOOST_TEST(LoadU16(&encoded.scales[2 * g]) == c.scales[g]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(quotients_use_the_scale_before_it_becomes_f16) {
  // 1/7 as f16 is 0.14282227: with it 0.21425 would be 1.5001 steps and become 2, not 1.
  const Encoded encoded = Encode(TrunkFormat::kQ4G, {1.0f, 0.21425f});
  BOOST_TEST(encoded.payload[0] == 0x9F);  // 7 and 1
}

BOOST_AUTO_TEST_CASE(unquantised_formats_survive_the_way_there_and_back) {
  const std::vector<float> row = {0.0f, -0.0f, 1.0f, -2.5f, 0x1p-24f, 65504.0f, -0x1.8p-15f};
  for (const TrunkFormat format : {TrunkFormat::kF32, TrunkFormat::kF16}) {
    const std::vector<float> decoded = Decode(Encode(format, row));
    BOOST_TEST(std::memcmp(decoded.data(), row.data(), row.size() * sizeof(float)) == 0);
  }
}

BOOST_AUTO_TEST_CASE(decoding_is_within_half_a_step_of_the_original) {
  for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G, TrunkFormat::kQ3G}) {
    for (const int64_t columns : {1, 127, 128, 129, 300}) {
      const std::vector<float> row = Series(columns);
      const Encoded encoded = Encode(format, row);
      const std::vector<float> decoded = Decode(encoded);
      for (int64_t i = 0; i < columns; ++i) {
        const float step = HalfToFloat(LoadU16(&encoded.scales[i / 128 * 2]));
        BOOST_TEST_REQUIRE(std::fabs(decoded[i] - row[i]) <= 0.51f * step);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(subnormal_scales_keep_their_weights) {
  // 7e-6 / 7 is below the smallest normal half, 6.1e-5.
  const std::vector<float> decoded = Decode(Encode(TrunkFormat::kQ4G, {7e-6f, -7e-6f, 1e-6f}));
  BOOST_TEST(decoded[0] == 7 * HalfToFloat(FloatToHalf(1e-6f)));
  BOOST_TEST(decoded[0] > 6e-6f);
  BOOST_TEST(decoded[1] == -decoded[0]);
}

BOOST_AUTO_TEST_CASE(tiny_and_zero_groups_decode_to_zero) {
  for (const TrunkFormat format : {TrunkFormat::kQ8G, TrunkFormat::kQ4G, TrunkFormat::kQ3G}) {
    for (const float value : {0.0f, 1e-12f, -1e-9f, 1e-45f}) {
      for (const float decoded : Decode(Encode(format, {value, value}))) {
        BOOST_TEST(decoded == 0.0f);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(magnitudes_beyond_f16_are_refused_wherever_they_stand) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const TrunkFormat format : kFormats) {
    if (format == TrunkFormat::kF32) continue;
    for (const float bad : {65504.004f, -1e30f, infinity, -infinity, nan, -nan}) {
      for (const int64_t at : {0, 127, 128, 299}) {
        std::vector<float> row = Series(300);
        row[at] = bad;
        BOOST_TEST((StatusOf(format, row).code() == Code::kUnsupported));
      }
    }
    BOOST_TEST(StatusOf(format, {65504.0f, -65504.0f}).ok());
  }
}

BOOST_AUTO_TEST_CASE(refusal_names_the_value_and_the_column) {
  std::vector<float> row(200, 1.0f);
  row[150] = 70000.0f;
  const std::string message = StatusOf(TrunkFormat::kQ4G, row).message();
  BOOST_TEST(message.find("70000") != std::string::npos);
  BOOST_TEST(message.find("column 128") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_of_a_matrix_are_found_by_their_stride) {
  for (const TrunkFormat format : kFormats) {
    const int64_t columns = 130;
    TrunkMatrix matrix{.format = format, .rows = 3, .columns = columns};
    std::vector<uint8_t> payload;
    std::vector<uint8_t> scales;
    std::vector<std::vector<float>> rows;
    for (int r = 0; r < 3; ++r) {
      std::vector<float> row = Series(columns);
      for (float& value : row) value *= static_cast<float>(r + 1);
      const Encoded encoded = Encode(format, row);
      rows.push_back(Decode(encoded));
      payload.insert(payload.end(), encoded.payload.begin(), encoded.payload.end());
      scales.insert(scales.end(), encoded.scales.begin(), encoded.scales.end());
    }
    matrix.payload = payload.data();
    matrix.scales = scales.empty() ? nullptr : scales.data();
    for (int r = 0; r < 3; ++r) {
      std::vector<float> out(columns);
      DecodeTrunkRow(matrix, r, out);
      BOOST_TEST(out == rows[r], boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
