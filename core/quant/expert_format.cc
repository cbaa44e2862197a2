// SPDX-License-Identifier: Apache-2.0
//
// Expert matrices, scalar: where an index stands and what it decodes to. The invariant: nothing
// outside ExpertIndexBytes is touched, and padding rows of the last block are left to the caller,
// who zeroes the buffer first. Pure functions; any thread.

#include "quant/expert_format.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/half.h"

namespace waste {
namespace {

// Offset of the index bytes of row r, vector v: blocks of 64 rows, inside them vector by vector.
int64_t IndexOffset(const ExpertCodec& codec, int64_t columns, int64_t r, int64_t v) {
  const int64_t vectors = columns / kVectorSize;
  return ((r / kIndexBlock * vectors + v) * kIndexBlock + r % kIndexBlock) *
         codec.bytes_per_vector();
}

}  // namespace

int64_t ExpertIndexBytes(const ExpertCodec& codec, int64_t rows, int64_t columns) {
  return RoundUp(rows, kIndexBlock) * (columns / kVectorSize) * codec.bytes_per_vector();
}

std::array<uint8_t, kMaxStages> ExpertIndices(const ExpertMatrix& matrix, int64_t r, int64_t v) {
  const uint8_t* const bytes = matrix.indices + IndexOffset(matrix.codec, matrix.columns, r, v);
  std::array<uint8_t, kMaxStages> indices = {};
  if (matrix.codec.kind == IndexKind::kPacked6) {
    const auto fields = static_cast<uint32_t>(LoadLittle(bytes, 3));  // lowest six bits first
    for (int32_t s = 0; s < 4; ++s) indices[s] = static_cast<uint8_t>((fields >> (6 * s)) & 63);
  } else {
    for (int32_t s = 0; s < matrix.codec.stages; ++s) indices[s] = bytes[s];
  }
  return indices;
}

void DecodeExpertRow(const ExpertMatrix& matrix, int64_t r, std::span<float> out) {
  const float scale = HalfToFloat(LoadU16(matrix.scales + 2 * r));
  for (int64_t v = 0; v < matrix.columns / kVectorSize; ++v) {
    const std::array<uint8_t, kMaxStages> indices = ExpertIndices(matrix, r, v);
    for (int64_t i = 0; i < kVectorSize; ++i) {
      float sum = matrix.books[0][indices[0] * kVectorSize + i];
      for (int32_t s = 1; s < matrix.codec.stages; ++s) {
        sum += matrix.books[s][indices[s] * kVectorSize + i];
      }
      out[v * kVectorSize + i] = scale * sum;
    }
  }
}

void StoreExpertIndices(const ExpertCodec& codec, int64_t columns, int64_t r, int64_t v,
                        std::span<const uint8_t> stage_indices, std::span<uint8_t> indices) {
  WASTE_CHECK(static_cast<int32_t>(stage_indices.size()) == codec.stages);
  uint8_t* const bytes = &indices[IndexOffset(codec, columns, r, v)];
  if (codec.kind == IndexKind::kPacked6) {
    uint32_t fields = 0;
    for (int32_t s = 0; s < 4; ++s) fields |= uint32_t{stage_indices[s]} << (6 * s);
    StoreLittle(bytes, fields, 3);
  } else {
    for (int32_t s = 0; s < codec.stages; ++s) bytes[s] = stage_indices[s];
  }
}

}  // namespace waste
