// SPDX-License-Identifier: Apache-2.0
//
// The formats of expert matrices (docs/format.md, "Expert record"): residual vector quantisation of
// eight weights at a time. A matrix [rows, columns] is stored in blocks of 64 rows; inside a block,
// vector by vector (columns / 8), the indices of its 64 rows, each `stages` bytes (VQ3R, VQ2R) or
// three bytes that hold four 6-bit indices (VQ4P).
// A row of weights is f16 scale * (C_0[i_0] + C_1[i_1] + ...). Scalar, this code defines the
// meaning; SIMD kernels are tested against it. Pure functions.

#ifndef WASTE_CORE_QUANT_EXPERT_FORMAT_H_
#define WASTE_CORE_QUANT_EXPERT_FORMAT_H_

#include <array>
#include <cstdint>
#include <span>

#include "quant/book_forms.h"

namespace waste {

inline constexpr int64_t kVectorSize = 8;   // weights of one index tuple
inline constexpr int64_t kIndexBlock = 64;  // rows of a block
inline constexpr int32_t kMaxStages = 6;

// How indices are stored. kByte: `stages` (2, 3, 4 or 6) bytes a vector, 256-entry books.
// kPacked6 (VQ4P): three bytes hold four 6-bit indices, so `stages` is 4 and books have 64 entries.
enum class IndexKind : int32_t { kByte, kPacked6 };

struct ExpertCodec {
  IndexKind kind = IndexKind::kByte;
  int32_t stages = 3;
  int32_t entries = 256;

  int64_t bytes_per_vector() const { return kind == IndexKind::kPacked6 ? 3 : stages; }
};

// Bytes of the indices of a [rows, columns] matrix; columns is a multiple of 8.
int64_t ExpertIndexBytes(const ExpertCodec& codec, int64_t rows, int64_t columns);

// One expert matrix as it lies in a record. `books[s]` is stage s's codebook as f32,
// [entries, 8]; a packed index beyond `entries` cannot occur (6 bits, 64 entries). `forms` are the
// same for kernels that multiply whole books.
struct ExpertMatrix {
  ExpertCodec codec;
  int64_t rows = 0;
  int64_t columns = 0;
  const uint8_t* indices = nullptr;
  const uint8_t* scales = nullptr;  // f16 [rows], not aligned
  std::array<const float*, kMaxStages> books = {};
  std::array<BookForms, kMaxStages> forms = {};
};

// The stage indices of vector v (columns v*8..v*8+7) of row r.
std::array<uint8_t, kMaxStages> ExpertIndices(const ExpertMatrix& matrix, int64_t r, int64_t v);

// Row r as f32 weights: out is [columns].
void DecodeExpertRow(const ExpertMatrix& matrix, int64_t r, std::span<float> out);

// Writes the indices of one vector where row r, vector v stands in `indices`.
void StoreExpertIndices(const ExpertCodec& codec, int64_t columns, int64_t r, int64_t v,
                        std::span<const uint8_t> stage_indices, std::span<uint8_t> indices);

}  // namespace waste

#endif  // WASTE_CORE_QUANT_EXPERT_FORMAT_H_
