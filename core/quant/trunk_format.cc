// SPDX-License-Identifier: Apache-2.0
//
// Trunk rows, scalar: byte layout and rounding exactly as the format's page says. The invariant:
// EncodeTrunkRow writes every byte of its row, padding included, and DecodeTrunkRow reads no byte
// outside it. Pure functions; any thread.

#include "quant/trunk_format.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/half.h"

namespace waste {
namespace {

constexpr float kLargestHalf = 65504.0f;
constexpr float kSmallestMagnitude = 1e-8f;  // of a group, so that a group of zeros has a scale

// The integers a quantised format holds. `highest` stands for a group's largest magnitude.
struct Range {
  int32_t lowest;
  int32_t highest;
};

Range RangeOf(TrunkFormat format) {
  if (format == TrunkFormat::kQ8G) return {-127, 127};
  if (format == TrunkFormat::kQ4G) return {-8, 7};
  WASTE_CHECK(format == TrunkFormat::kQ3G);
  return {-4, 3};
}

float LoadFloat(const uint8_t* bytes) {
  return std::bit_cast<float>(static_cast<uint32_t>(LoadLittle(bytes, 4)));
}

// Weight i of a row of three-bit fields. A field may cross into the next byte; the row's spare last
// byte makes that read safe for the last field too.
int32_t Load3Bits(const uint8_t* row, int64_t i) {
  const int64_t bit = 3 * i;
  return static_cast<int32_t>(LoadU16(row + bit / 8) >> (bit % 8)) & 7;
}

int32_t LoadInteger(TrunkFormat format, const uint8_t* row, int64_t i) {
  switch (format) {
    case TrunkFormat::kQ8G:
      return static_cast<int8_t>(row[i]);
    case TrunkFormat::kQ4G:
      return ((row[i / 2] >> (i % 2 * 4)) & 15) - 8;
    default:
      return Load3Bits(row, i) - 4;
  }
}

// `row` was zeroed; each i is stored once.
void StoreInteger(TrunkFormat format, std::span<uint8_t> row, int64_t i, int32_t q) {
  switch (format) {
    case TrunkFormat::kQ8G:
      row[i] = static_cast<uint8_t>(q);
      return;
    case TrunkFormat::kQ4G:
      row[i / 2] = static_cast<uint8_t>(row[i / 2] | (q + 8) << (i % 2 * 4));
      return;
    default: {
      const int64_t bit = 3 * i;
      const int32_t field = (q + 4) << (bit % 8);
      row[bit / 8] = static_cast<uint8_t>(row[bit / 8] | field);
      row[bit / 8 + 1] = static_cast<uint8_t>(row[bit / 8 + 1] | field >> 8);
    }
  }
}

// Half to even, for |value| < 2^22: the float's last place becomes the ones.
float RoundToEven(float value) {
  constexpr float kOnesPlace = 0x1.8p23f;
  return (value + kOnesPlace) - kOnesPlace;
}

// The largest magnitude, or NaN if any value is not a number.
float LargestMagnitude(std::span<const float> values) {
  float largest = 0.0f;
  for (const float value : values) {
    const float magnitude = std::fabs(value);
    if (!(magnitude <= largest)) largest = magnitude;  // NaN enters here, and then stays
    if (std::isnan(largest)) break;
  }
  return largest;
}

Status CheckFitsHalf(float largest, int64_t first_column) {
  if (largest <= kLargestHalf) return {};
  return Failure(Code::kUnsupported, "weights from column ", first_column,
                 " on have the largest magnitude ", largest,
                 ", which is not a finite f16 (at most 65504): keep this tensor as F32");
}

Status EncodeHalves(std::span<const float> row, std::span<uint8_t> payload) {
  WASTE_TRY(CheckFitsHalf(LargestMagnitude(row), 0));
  for (size_t i = 0; i < row.size(); ++i) StoreLittle(&payload[2 * i], FloatToHalf(row[i]), 2);
  return {};
}

Status EncodeGroups(TrunkFormat format, std::span<const float> row, std::span<uint8_t> payload,
                    std::span<uint8_t> scales) {
  const Range range = RangeOf(format);
  const auto columns = static_cast<int64_t>(row.size());
  std::fill(payload.begin(), payload.end(), uint8_t{0});
  for (int64_t g = 0; g < TrunkRowGroups(columns); ++g) {
    const int64_t first = g * kTrunkGroup;
    const int64_t count = std::min(kTrunkGroup, columns - first);
    const std::span<const float> group = row.subspan(first, count);
    const float largest = LargestMagnitude(group);
    WASTE_TRY(CheckFitsHalf(largest, first));
    const float scale = std::max(largest, kSmallestMagnitude) / static_cast<float>(range.highest);
    for (int64_t i = 0; i < kTrunkGroup; ++i) {
      const float quotient = i < count ? group[i] / scale : 0.0f;
      const auto q = static_cast<int32_t>(RoundToEven(quotient));
      StoreInteger(format, payload, first + i, std::clamp(q, range.lowest, range.highest));
    }
    StoreLittle(&scales[2 * g], FloatToHalf(scale), 2);
  }
  return {};
}

}  // namespace

bool IsTrunkFormat(int64_t number) { return (number >= 0 && number <= 3) || number == 7; }

bool IsQuantised(TrunkFormat format) {
  return format != TrunkFormat::kF32 && format != TrunkFormat::kF16;
}

const char* TrunkFormatName(TrunkFormat format) {
  switch (format) {
    case TrunkFormat::kF32:
      return "F32";
    case TrunkFormat::kF16:
      return "F16";
    case TrunkFormat::kQ8G:
      return "Q8G";
    case TrunkFormat::kQ4G:
      return "Q4G";
    case TrunkFormat::kQ3G:
      return "Q3G";
  }
  return "unknown";
}

int64_t TrunkRowGroups(int64_t columns) { return CeilDivide(columns, kTrunkGroup); }

int64_t TrunkRowBytes(TrunkFormat format, int64_t columns) {
  const int64_t padded = TrunkRowGroups(columns) * kTrunkGroup;
  switch (format) {
    case TrunkFormat::kF32:
      return columns * 4;
    case TrunkFormat::kF16:
      return columns * 2;
    case TrunkFormat::kQ8G:
      return padded;
    case TrunkFormat::kQ4G:
      return padded / 2;
    case TrunkFormat::kQ3G:
      break;
  }
  WASTE_CHECK(format == TrunkFormat::kQ3G);
  return padded * 3 / 8 + 1;  // the spare byte belongs to the format
}

void DecodeTrunkRow(const TrunkMatrix& matrix, int64_t r, std::span<float> out) {
  const uint8_t* const row = matrix.row(r);
  const uint8_t* const scales = matrix.row_scales(r);
  for (int64_t i = 0; i < matrix.columns; ++i) {
    switch (matrix.format) {
      case TrunkFormat::kF32:
        out[i] = LoadFloat(row + 4 * i);
        break;
      case TrunkFormat::kF16:
        out[i] = HalfToFloat(LoadU16(row + 2 * i));
        break;
      default:
        out[i] = static_cast<float>(LoadInteger(matrix.format, row, i)) *
                 HalfToFloat(LoadU16(scales + i / kTrunkGroup * 2));
    }
  }
}

Status EncodeTrunkRow(TrunkFormat format, std::span<const float> row, std::span<uint8_t> payload,
                      std::span<uint8_t> scales) {
  const auto columns = static_cast<int64_t>(row.size());
  WASTE_CHECK(static_cast<int64_t>(payload.size()) == TrunkRowBytes(format, columns));
  WASTE_CHECK(static_cast<int64_t>(scales.size()) ==
              (IsQuantised(format) ? 2 * TrunkRowGroups(columns) : 0));
  switch (format) {
    case TrunkFormat::kF32:
      for (size_t i = 0; i < row.size(); ++i) {
        StoreLittle(&payload[4 * i], std::bit_cast<uint32_t>(row[i]), 4);
      }
      return {};
    case TrunkFormat::kF16:
      return EncodeHalves(row, payload);
    default:
      return EncodeGroups(format, row, payload, scales);
  }
}

}  // namespace waste
