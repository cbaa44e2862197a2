// SPDX-License-Identifier: Apache-2.0

#include "model/trunk_loader.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace waste {
namespace {

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
  return Read(*entry, arena_.Bytes(entry->bytes));
}

TrunkMatrix TrunkLoader::Staged(const std::string& name, int64_t rows, int64_t columns) {
  const TrunkEntry* entry = Entry(name, rows, columns);
  return entry == nullptr ? TrunkMatrix{} : Stage(*entry);
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

TrunkMatrix TrunkLoader::Read(const TrunkEntry& entry, uint8_t* to) {
  TrunkMatrix matrix{.format = entry.format, .rows = entry.rows(), .columns = entry.columns()};
  file_bytes_ += entry.bytes;
  if (!reading()) return matrix;
  if (Status cancelled = progress_->CheckCancelled(); !cancelled.ok()) {
    Fail(std::move(cancelled));
    return {};
  }
  if (Status read = container_.ReadTrunk(entry, {to, static_cast<size_t>(entry.bytes)});
      !read.ok()) {
    Fail(std::move(read));
    return {};
  }
  progress_->Add(entry.bytes);
  matrix.payload = to;
  if (IsQuantised(entry.format)) matrix.scales = to + (entry.scale_offset - entry.offset);
  return matrix;
}

TrunkMatrix TrunkLoader::Stage(const TrunkEntry& entry) {
  staging_bytes_ = std::max(staging_bytes_, entry.bytes);
  return Read(entry, staging_);
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
