// SPDX-License-Identifier: Apache-2.0

#include "container/codebooks.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/half.h"

namespace waste {
namespace {

constexpr int32_t kCodebookFormat = 4;  // whatever the experts' format is

Status CheckHeader(std::span<const uint8_t> record, int64_t number, int64_t entries,
                   const std::string& path) {
  const auto fail = [&](Code code, const auto&... what) {
    return Failure(code, path, ": book ", number, ": ", what..., "; copy the file again");
  };
  ByteReader in(record);
  if (in.U32() != kCodebookMagic) return fail(Code::kFormat, "no codebook here");
  const int32_t id = in.U16();
  const int32_t format = in.U8();
  const int32_t vector_size = in.U8();
  const int64_t entry_count = in.U32();
  const uint32_t reserved = in.U32();
  if (format != kCodebookFormat || reserved != 0)
    return fail(Code::kUnsupported, "format ", format, ", reserved ", reserved,
                ", where this version reads 4 and 0");
  if (id != (number & 0xFFFF)) return fail(Code::kCorrupt, "its header says ", id);
  if (vector_size != kVectorSize || entry_count != entries)
    return fail(Code::kCorrupt, entry_count, " entries of ", vector_size,
                " values, where the manifest says ", entries, " of ", kVectorSize);
  return Status();
}

bool IsAllZero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

int64_t Codebooks::FindGap(int64_t first, int64_t book_count) const {
  for (int64_t number = first; number < first + book_count; ++number)
    if (is_gap[static_cast<size_t>(number)]) return number;
  return -1;
}

Result<Codebooks> ParseCodebooks(std::span<const uint8_t> bytes, int64_t entries,
                                 const std::string& path) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  const int64_t record_bytes = CodebookRecordBytes(entries);
  if (size % record_bytes != 0)
    return Failure(Code::kCorrupt, path, ": ", size, " bytes are no whole number of books of ",
                   record_bytes, "; copy the file again");
  const int64_t count = size / record_bytes;
  if (count > kMaxCodebooks)
    return Failure(Code::kCorrupt, path, ": ", count, " books; records can name ", kMaxCodebooks);

  Codebooks books;
  books.entries = entries;
  books.values.reserve(static_cast<size_t>(count * entries * kVectorSize));
  for (int64_t number = 0; number < count; ++number) {
    const auto record = bytes.subspan(number * record_bytes, record_bytes);
    const bool gap = IsAllZero(record);
    if (!gap) WASTE_TRY(CheckHeader(record, number, entries, path));
    books.is_gap.push_back(gap);
    for (int64_t i = 0; i < entries * kVectorSize; ++i) {
      const float value = HalfToFloat(LoadU16(&record[kCodebookHeaderSize + 2 * i]));
      if (!std::isfinite(value))
        return Failure(Code::kCorrupt, path, ": book ", number, ", entry ", i / kVectorSize,
                       " is not finite; copy the file again");
      books.values.push_back(value);
    }
  }
  books.forms.reserve(static_cast<size_t>(count));
  for (int64_t number = 0; number < count; ++number)
    books.forms.emplace_back(books.book(number), entries);
  return books;
}

Result<std::vector<uint8_t>> EncodeCodebook(int64_t number, std::span<const float> values) {
  ByteWriter out;
  out.U32(kCodebookMagic);
  out.U16(static_cast<uint16_t>(number & 0xFFFF));
  out.U8(kCodebookFormat);
  out.U8(kVectorSize);
  out.U32(static_cast<uint32_t>(values.size() / kVectorSize));
  out.U32(0);
  for (const float value : values) {
    const uint16_t half = FloatToHalf(value);
    if (!std::isfinite(HalfToFloat(half)))
      return Failure(Code::kUnsupported, "codebook ", number, ": the value ", value,
                     " does not fit f16 (largest 65504)");
    out.U16(half);
  }
  return std::move(out).Take();
}

}  // namespace waste
