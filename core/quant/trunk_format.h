// SPDX-License-Identifier: Apache-2.0
//
// The formats of trunk tensors (docs/format.md, "Trunk"): what each byte means, scalar. Quantised
// rows are cut into groups of 128 columns, each with an f16 scale; the last group is padded with
// zeros. A weight is q * f16(scale). SIMD kernels are tested against DecodeRow. Pure functions.

#ifndef WASTE_CORE_QUANT_TRUNK_FORMAT_H_
#define WASTE_CORE_QUANT_TRUNK_FORMAT_H_

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"

namespace waste {

enum class TrunkFormat : int32_t { kF32 = 0, kF16 = 1, kQ8G = 2, kQ4G = 3, kQ3G = 7 };

inline constexpr int64_t kTrunkGroup = 128;  // columns that share a scale

bool IsTrunkFormat(int64_t number);
bool IsQuantised(TrunkFormat format);  // has scales
const char* TrunkFormatName(TrunkFormat format);

// Bytes of one row of `columns` weights, without scales; and groups (= scales) in a row.
int64_t TrunkRowBytes(TrunkFormat format, int64_t columns);
int64_t TrunkRowGroups(int64_t columns);

// A matrix as it lies in memory. Rows are contiguous; `scales` is [rows, groups] f16, null for F32
// and F16. Nothing is aligned.
struct TrunkMatrix {
  TrunkFormat format = TrunkFormat::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
  const uint8_t* payload = nullptr;
  const uint8_t* scales = nullptr;

  const uint8_t* row(int64_t r) const { return payload + r * TrunkRowBytes(format, columns); }
  const uint8_t* row_scales(int64_t r) const {
    return scales == nullptr ? nullptr : scales + r * TrunkRowGroups(columns) * 2;
  }
};

// Row r of `matrix` as f32: out is [columns].
void DecodeTrunkRow(const TrunkMatrix& matrix, int64_t r, std::span<float> out);

// Encodes one row [columns] into `payload` (TrunkRowBytes) and `scales` (groups * 2 bytes, empty
// for F32 and F16). Quotients use the f32 scale, rounding is half to even. Errors: kUnsupported if
// a group's largest magnitude does not fit f16 or is not finite.
Status EncodeTrunkRow(TrunkFormat format, std::span<const float> row, std::span<uint8_t> payload,
                      std::span<uint8_t> scales);

}  // namespace waste

#endif  // WASTE_CORE_QUANT_TRUNK_FORMAT_H_
