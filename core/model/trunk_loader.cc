// SPDX-License-Identifier: Apache-2.0

#include "model/trunk_loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/checked.h"

namespace waste {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;  // what a cancel waits for, and a thread reads

// Bytes of payload and scales, or nothing if they would not fit a number.
std::optional<int64_t> PayloadBytes(const TrunkEntry& entry) {
  return CheckedMultiply(entry.rows(), TrunkRowBytes(entry.format, entry.columns()));
}

std::optional<int64_t> ScaleBytes(const TrunkEntry& entry) {
  if (!IsQuantised(entry.format)) return 0;
  return CheckedMultiply(entry.rows(), TrunkRowGroups(entry.columns()) * 2);
}

std::string ShapeText(const TrunkEntry& entry) {
  std::string text = "[";
  for (const int64_t size : entry.shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace

TrunkLoader::TrunkLoader(const Container& container, uint8_t* memory, int64_t staging_bytes,
                         Progress& progress)
    : container_(container),
      arena_(memory + RoundUp(staging_bytes, Arena::kAlignment)),
      staging_(memory),
      progress_(&progress) {}

const TrunkEntry* TrunkLoader::Find(const std::string& name) {
  if (!status_.ok()) return nullptr;
  const TrunkEntry* entry = container_.manifest().FindTrunk(name);
  if (entry == nullptr) {
    Fail(Failure(Code::kCorrupt, "trunk tensor ", name, " is missing; convert the model again"));
    return nullptr;
  }
  const auto payload = PayloadBytes(*entry), scales = ScaleBytes(*entry);
  const bool scales_follow =
      !IsQuantised(entry->format) ||
      (payload.has_value() && entry->scale_offset == entry->offset + *payload);
  if (!payload || !scales || CheckedAdd(*payload, *scales) != entry->bytes || !scales_follow) {
    Fail(Failure(Code::kCorrupt, "trunk tensor ", name, " of shape ", ShapeText(*entry), " in ",
                 TrunkFormatName(entry->format), " cannot lie in its ", entry->bytes, " bytes"));
    return nullptr;
  }
  return entry;
}

const TrunkEntry* TrunkLoader::Entry(const std::string& name, int64_t rows, int64_t columns) {
  const TrunkEntry* entry = Find(name);
  if (entry == nullptr) return nullptr;
  if (entry->shape.size() == 2 && entry->rows() == rows && entry->columns() == columns)
    return entry;
  Fail(Failure(Code::kCorrupt, "trunk tensor ", name, " has shape ", ShapeText(*entry),
               ", the config makes it [", rows, ", ", columns, "]"));
  return nullptr;
}

TrunkMatrix TrunkLoader::Matrix(const std::string& name, int64_t rows, int64_t columns) {
  const TrunkEntry* entry = Entry(name, rows, columns);
  if (entry == nullptr) return {};
  return Place(*entry, arena_.Bytes(entry->bytes), matrices_);
}

TrunkMatrix TrunkLoader::Staged(const std::string& name, int64_t rows, int64_t columns) {
  const TrunkEntry* entry = Entry(name, rows, columns);
  return entry == nullptr ? TrunkMatrix{} : Stage(*entry);
}

TrunkMatrix TrunkLoader::RowsOfEach(const TrunkMatrix& staged, int64_t first, int64_t rows,
                                    int64_t step) {
  TrunkMatrix kept = staged;
  kept.rows = staged.rows / step * rows;
  const int64_t row_bytes = TrunkRowBytes(staged.format, staged.columns);
  const int64_t scale_bytes = IsQuantised(staged.format) ? 2 * TrunkRowGroups(staged.columns) : 0;
  uint8_t* payload = arena_.Bytes(kept.rows * row_bytes);
  uint8_t* scales = arena_.Bytes(kept.rows * scale_bytes);
  kept.payload = payload;
  kept.scales = scale_bytes == 0 ? nullptr : scales;
  if (!reading()) return kept;
  for (int64_t row = first; row + rows <= staged.rows; row += step) {
    payload = std::copy_n(staged.row(row), rows * row_bytes, payload);
    if (scale_bytes > 0) scales = std::copy_n(staged.row_scales(row), rows * scale_bytes, scales);
  }
  return kept;
}

float* TrunkLoader::Vector(const std::string& name, int64_t count) {
  const TrunkEntry* entry = Find(name);
  if (entry == nullptr) return nullptr;
  if (CheckedMultiply(entry->rows(), entry->columns()) == count) return Values(*entry, count);
  Fail(Failure(Code::kCorrupt, "trunk tensor ", name, " has shape ", ShapeText(*entry),
               ", the config makes it ", count, " values"));
  return nullptr;
}

float* TrunkLoader::PaddedVector(const std::string& name, int64_t count) {
  const TrunkEntry* entry = Find(name);
  if (entry == nullptr) return nullptr;
  const auto held = CheckedMultiply(entry->rows(), entry->columns());
  if (held.has_value() && *held >= count) return Values(*entry, count);
  Fail(Failure(Code::kCorrupt, "trunk tensor ", name, " has shape ", ShapeText(*entry),
               ", the config needs ", count, " values of it"));
  return nullptr;
}

TrunkMatrix TrunkLoader::Place(const TrunkEntry& entry, uint8_t* to, std::vector<Piece>& pieces) {
  TrunkMatrix matrix{.format = entry.format, .rows = entry.rows(), .columns = entry.columns()};
  file_bytes_ += entry.bytes;
  if (!reading()) return matrix;
  for (int64_t from = 0; from < entry.bytes; from += kPieceBytes) {
    const int64_t size = std::min(kPieceBytes, entry.bytes - from);
    pieces.push_back({&entry, from, {to + from, static_cast<size_t>(size)}});
  }
  matrix.payload = to;
  if (IsQuantised(entry.format)) matrix.scales = to + (entry.scale_offset - entry.offset);
  return matrix;
}

Status TrunkLoader::ReadPiece(const Piece& piece) {
  const int64_t size = std::ssize(piece.to);
  WASTE_TRY(progress_->CheckCancelled());
  WASTE_TRY(container_.ReadTrunkPart(*piece.entry, piece.from, piece.to));
  container_.ForgetTrunkPart(*piece.entry, piece.from, size);
  progress_->Add(size);
  return Status();
}

TrunkMatrix TrunkLoader::Stage(const TrunkEntry& entry) {
  staging_bytes_ = std::max(staging_bytes_, entry.bytes);
  std::vector<Piece> pieces;
  const TrunkMatrix matrix = Place(entry, staging_, pieces);
  for (const Piece& piece : pieces) {
    Status read = ReadPiece(piece);
    if (read.ok()) continue;
    Fail(std::move(read));
    return {};
  }
  return matrix;
}

// A thread takes the next piece of the file, so that together they read it from front to back. The
// failure that is told is the first of those met.
void TrunkLoader::ReadMatrices(ThreadPool* pool) {
  if (!reading()) return;
  std::sort(matrices_.begin(), matrices_.end(), [](const Piece& a, const Piece& b) {
    return a.entry->offset + a.from < b.entry->offset + b.from;
  });
  std::mutex mutex;
  std::atomic<bool> failed{false};
  const auto read = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !failed; ++i) {
      Status status = ReadPiece(matrices_[static_cast<size_t>(i)]);
      if (status.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      failed = true;
      Fail(std::move(status));
    }
  };
  const int64_t count = std::ssize(matrices_);
  if (pool != nullptr)
    pool->Run(count, 1, read);
  else
    read(0, count);
}

// All values of the tensor, of which the first `checked` must be finite.
float* TrunkLoader::Values(const TrunkEntry& entry, int64_t checked) {
  const TrunkMatrix matrix = Stage(entry);
  float* values = arena_.Floats(matrix.rows * matrix.columns);
  if (!reading()) return values;
  for (int64_t row = 0; row < matrix.rows; ++row)
    DecodeTrunkRow(matrix, row,
                   {values + row * matrix.columns, static_cast<size_t>(matrix.columns)});
  for (int64_t i = 0; i < checked; ++i) {
    if (std::isfinite(values[i])) continue;
    Fail(Failure(Code::kCorrupt, "trunk tensor ", entry.name, ": value ", i, " is not finite"));
    return nullptr;
  }
  return values;
}

}  // namespace waste
