// SPDX-License-Identifier: Apache-2.0

#include "convert/trunk_encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "container/json_text.h"

namespace waste {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 22;  // held as f32
constexpr int64_t kGrainElements = int64_t{1} << 15;  // one thread's share at a time

// The encoded tensor, filled row by row.
struct Encoded {
  TrunkFormat format;
  int64_t columns;
  int64_t row_bytes;
  int64_t row_scale_bytes;
  std::vector<uint8_t> payload;
  std::vector<uint8_t> scales;

  Encoded(TrunkFormat f, int64_t rows, int64_t c)
      : format(f),
        columns(c),
        row_bytes(TrunkRowBytes(f, c)),
        row_scale_bytes(IsQuantised(f) ? TrunkRowGroups(c) * 2 : 0),
        payload(static_cast<size_t>(rows * row_bytes)),
        scales(static_cast<size_t>(rows * row_scale_bytes)) {}

  Status EncodeRow(int64_t r, std::span<const float> row) {
    if (!std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); }))
      return Failure(Code::kUnsupported, "a value is not finite");
    return EncodeTrunkRow(
        format, row, {payload.data() + r * row_bytes, static_cast<size_t>(row_bytes)},
        {scales.data() + r * row_scale_bytes, static_cast<size_t>(row_scale_bytes)});
  }
};

// Encodes rows [first, first + count), which `values` holds. Errors: of the first row that has one.
Status EncodeRows(int64_t first, int64_t count, const std::vector<float>& values, ThreadPool& pool,
                  Encoded& encoded) {
  const int64_t columns = encoded.columns;
  const auto row = [&](int64_t r) {
    return std::span<const float>(values.data() + r * columns, static_cast<size_t>(columns));
  };
  std::atomic<int64_t> first_bad{count};
  pool.Run(count, std::max<int64_t>(1, kGrainElements / columns), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (encoded.EncodeRow(first + r, row(r)).ok()) continue;
      int64_t known = first_bad.load(std::memory_order_relaxed);
      while (r < known && !first_bad.compare_exchange_weak(known, r)) {
      }
    }
  });
  const int64_t bad = first_bad.load();
  if (bad == count) return Status();
  const Status why = encoded.EncodeRow(first + bad, row(bad));
  return Failure(why.code(), "row ", first + bad, ": ", why.message());
}

}  // namespace

Status ConvertTrunkTensor(const std::string& name, const PlannedTensor& tensor, ThreadPool& pool,
                          const Progress& progress, ContainerWriter& writer) {
  const int64_t columns = tensor.shape.back();
  const int64_t rows = tensor.source->elements / columns;
  Encoded encoded(tensor.format, rows, columns);
  const int64_t piece_rows = std::min(rows, std::max<int64_t>(1, kPieceElements / columns));
  std::vector<float> values;
  for (int64_t first = 0; first < rows; first += piece_rows) {
    WASTE_TRY(progress.CheckCancelled());
    const int64_t count = std::min(piece_rows, rows - first);
    values.resize(static_cast<size_t>(count * columns));
    WASTE_TRY(ReadElements(*tensor.source, first * columns, values));
    const Status encoding = EncodeRows(first, count, values, pool, encoded);
    if (!encoding.ok()) {
      return Failure(encoding.code(), tensor.source->file->path(), ": tensor ",
                     Quote(tensor.source->name), ", ", encoding.message());
    }
  }
  return writer.AddTrunk(name, tensor.format, tensor.shape, encoded.payload, encoded.scales);
}

}  // namespace waste
