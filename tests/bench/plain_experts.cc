// SPDX-License-Identifier: Apache-2.0

#include "plain_experts.h"

#include "base/bytes.h"
#include "base/half.h"

// GCC 12 at -O3 makes gathers of such loops where it may, which take twice as long on Zen 4.
#if defined(__GNUC__) && !defined(__clang__)
#define WASTE_PLAIN __attribute__((optimize("no-tree-vectorize")))
#else
#define WASTE_PLAIN
#endif

namespace waste {
namespace {

constexpr int64_t kByteEntries = 256, kPackedEntries = 64;

// A row's vectors are a block's row apart. A sum for each stage: one alone would wait for itself.
WASTE_PLAIN float ByteRow(const uint8_t* indices, int64_t vectors, const float* tables) {
  float sum0 = 0, sum1 = 0, sum2 = 0;
  for (int64_t v = 0; v < vectors; ++v) {
    sum0 += tables[indices[0]];
    sum1 += tables[kByteEntries + indices[1]];
    sum2 += tables[2 * kByteEntries + indices[2]];
    indices += 3 * kIndexBlock;
    tables += 3 * kByteEntries;
  }
  return sum0 + sum1 + sum2;
}

WASTE_PLAIN float PackedRow(const uint8_t* indices, int64_t vectors, const float* tables) {
  float sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (int64_t v = 0; v < vectors; ++v) {
    const uint32_t fields = indices[0] | uint32_t{indices[1]} << 8 | uint32_t{indices[2]} << 16;
    sum0 += tables[fields & 63];
    sum1 += tables[kPackedEntries + (fields >> 6 & 63)];
    sum2 += tables[2 * kPackedEntries + (fields >> 12 & 63)];
    sum3 += tables[3 * kPackedEntries + (fields >> 18)];
    indices += 3 * kIndexBlock;
    tables += 4 * kPackedEntries;
  }
  return sum0 + sum1 + sum2 + sum3;
}

}  // namespace

void BuildPlainTables(const ExpertMatrix& w, const float* x, float* tables) {
  for (int64_t v = 0; v < w.columns / kVectorSize; ++v)
    for (int32_t s = 0; s < w.codec.stages; ++s)
      for (int64_t e = 0; e < w.codec.entries; ++e) {
        const float* const entry = w.books[static_cast<size_t>(s)] + e * kVectorSize;
        float sum = 0;
        for (int64_t i = 0; i < kVectorSize; ++i) sum += x[v * kVectorSize + i] * entry[i];
        *tables++ = sum;
      }
}

bool PlainRows(const ExpertMatrix& w, const float* tables, float* y) {
  const bool is_packed = w.codec.kind == IndexKind::kPacked6;
  if (!is_packed && w.codec.stages != 3) return false;
  const int64_t vectors = w.columns / kVectorSize;
  for (int64_t r = 0; r < w.rows; ++r) {
    const int64_t at = r / kIndexBlock * vectors * kIndexBlock + r % kIndexBlock;
    const uint8_t* const indices = w.indices + 3 * at;  // three bytes in both
    const float sum =
        is_packed ? PackedRow(indices, vectors, tables) : ByteRow(indices, vectors, tables);
    y[r] = HalfToFloat(LoadU16(w.scales + 2 * r)) * sum;
  }
  return true;
}

}  // namespace waste
