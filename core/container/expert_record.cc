// SPDX-License-Identifier: Apache-2.0

#include "container/expert_record.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/crc32.h"

namespace waste {
namespace {

constexpr int64_t kMaxDimension = int64_t{1} << 26;

// The numbers of the header's format field.
enum RecordFormat : int32_t { kVq3r = 4, kVq2r = 5, kVq4p = 8 };

// The fields as they lie on disk.
struct RawHeader {
  uint32_t magic;
  int32_t layer;
  int32_t expert;
  int32_t format;
  int32_t flags;
  int32_t first_codebook;
  int32_t lowrank;
  uint32_t reserved;  // all three reserved fields, combined
  int64_t page_count;
  int64_t gate_at;
  int64_t up_at;
  int64_t down_at;
  int64_t scales_at;
  uint32_t crc;
};

RawHeader ReadFields(std::span<const uint8_t> bytes) {
  ByteReader in(bytes);
  RawHeader raw;
  raw.magic = in.U32();
  raw.layer = in.U16();
  raw.expert = in.U16();
  raw.format = in.U8();
  raw.flags = in.U8();
  raw.first_codebook = in.U16();
  raw.lowrank = in.U16();
  raw.reserved = in.U16();
  raw.page_count = in.U32();
  raw.gate_at = in.U32();
  raw.up_at = in.U32();
  raw.down_at = in.U32();
  raw.scales_at = in.U32();
  raw.crc = in.U32();
  raw.reserved |= in.U32();
  raw.reserved |= in.U32();
  return raw;
}

bool IsKnownFormat(int32_t format) { return format == kVq3r || format == kVq2r || format == kVq4p; }

// Byte indices are written as VQ3R, whatever the number of stages; VQ2R means the same.
bool FormatFitsCodec(int32_t format, const ExpertCodec& codec) {
  return (format == kVq4p) == (codec.kind == IndexKind::kPacked6);
}

// Each part starts where the one before ends. Were any offset merely in range, a kernel could read
// indices as scales, and the crc would not tell: it does not cover the header.
bool PartsAreInPlace(const RawHeader& raw, const ExpertLayout& layout) {
  return raw.gate_at == layout.gate_at && raw.up_at == layout.up_at &&
         raw.down_at == layout.down_at && raw.scales_at == layout.scales_at;
}

template <typename... Parts>
Status Fail(Code code, int32_t layer, int32_t expert, const Parts&... parts) {
  return Failure(code, "bank ", layer, ", expert ", expert, ": ", parts...);
}

bool IsExpertDimension(int64_t size) {
  return size > 0 && size <= kMaxDimension && size % kVectorSize == 0;
}

}  // namespace

std::optional<ExpertLayout> MakeExpertLayout(const ExpertCodec& codec, const ExpertDims& dims) {
  if (!IsExpertDimension(dims.inner) || !IsExpertDimension(dims.outer)) return std::nullopt;
  // Sums of a few products below 2^26 * 2^23 * 6: far from wrapping.
  const int64_t gate_bytes = ExpertIndexBytes(codec, dims.inner, dims.outer);
  const int64_t down_bytes = ExpertIndexBytes(codec, dims.outer, dims.inner);
  ExpertLayout layout{.codec = codec, .dims = dims};
  layout.gate_at = kExpertHeaderSize;
  layout.up_at = layout.gate_at + gate_bytes;
  layout.down_at = layout.up_at + gate_bytes;
  layout.scales_at = layout.down_at + down_bytes;
  layout.end = layout.scales_at + 2 * (2 * dims.inner + dims.outer);
  layout.record_bytes = RoundUp(layout.end, kExpertAlignment);
  if (layout.record_bytes > int64_t{UINT32_MAX}) return std::nullopt;
  return layout;
}

Result<ExpertHeader> ParseExpertHeader(std::span<const uint8_t> record, int32_t layer,
                                       int32_t expert, const ExpertLayout& layout,
                                       int64_t codebook_count) {
  const auto fail = [&](Code code, const auto&... what) {
    return Fail(code, layer, expert, what...);
  };
  const int64_t size = static_cast<int64_t>(record.size());
  if (size != layout.record_bytes)
    return fail(Code::kCorrupt, "a record of ", size, " bytes, where ", layout.record_bytes,
                " are needed; the bank file is cut short or of another model");

  const RawHeader raw = ReadFields(record.first(kExpertHeaderSize));
  if (raw.magic != kExpertMagic)
    return fail(Code::kFormat, "no expert record here; copy the file again");
  if (!IsKnownFormat(raw.format) || raw.flags != 0 || raw.lowrank != 0 || raw.reserved != 0)
    return fail(Code::kUnsupported, "format ", raw.format, ", flags ", raw.flags,
                ", low-rank part ", raw.lowrank, ", reserved ", raw.reserved,
                "; this version reads formats 4, 5 and 8 with zeros there");
  if (raw.layer != layer || raw.expert != expert)
    return fail(Code::kCorrupt, "the record says layer ", raw.layer, ", expert ", raw.expert,
                "; copy the file again");
  if (!FormatFitsCodec(raw.format, layout.codec))
    return fail(Code::kCorrupt, "format ", raw.format, ", but the manifest says that indices have ",
                layout.codec.kind == IndexKind::kPacked6 ? 6 : 8, " bits; copy the file again");
  if (raw.page_count * kExpertAlignment != size)
    return fail(Code::kCorrupt, raw.page_count, " blocks of 4096 in a record of ", size,
                "; copy the file again");
  if (raw.first_codebook + 3 * layout.codec.stages > codebook_count)
    return fail(Code::kCorrupt, 3 * layout.codec.stages, " codebooks from ", raw.first_codebook,
                " on, of ", codebook_count, "; copy the file again");
  if (!PartsAreInPlace(raw, layout))
    return fail(Code::kCorrupt, "its parts start at ", raw.gate_at, ", ", raw.up_at, ", ",
                raw.down_at, " and ", raw.scales_at, ", their sizes say ", layout.gate_at, ", ",
                layout.up_at, ", ", layout.down_at, " and ", layout.scales_at,
                "; copy the file again");
  return ExpertHeader{.first_codebook = raw.first_codebook, .crc = raw.crc};
}

Status CheckExpertCrc(std::span<const uint8_t> record, int32_t layer, int32_t expert,
                      const ExpertLayout& layout, const ExpertHeader& header) {
  WASTE_CHECK(static_cast<int64_t>(record.size()) >= layout.end);
  const uint32_t crc = Crc32(record.subspan(kExpertHeaderSize, layout.end - kExpertHeaderSize));
  if (crc == header.crc) return Status();
  return Fail(Code::kCorrupt, layer, expert, "crc32 of its bytes is ", crc, ", its header says ",
              header.crc, "; copy the file again");
}

void WriteExpertHeader(int32_t layer, int32_t expert, int64_t first_codebook,
                       const ExpertLayout& layout, std::span<uint8_t> record) {
  WASTE_CHECK(static_cast<int64_t>(record.size()) == layout.record_bytes);
  WASTE_CHECK(layer == (layer & 0xFFFF) && expert == (expert & 0xFFFF));
  WASTE_CHECK(first_codebook == (first_codebook & 0xFFFF));
  ByteWriter out;
  out.U32(kExpertMagic);
  out.U16(static_cast<uint16_t>(layer));
  out.U16(static_cast<uint16_t>(expert));
  out.U8(static_cast<uint8_t>(layout.codec.kind == IndexKind::kPacked6 ? kVq4p : kVq3r));
  out.U8(0);  // flags
  out.U16(static_cast<uint16_t>(first_codebook));
  out.U16(0);  // low-rank part
  out.U16(0);
  out.U32(static_cast<uint32_t>(layout.record_bytes / kExpertAlignment));
  out.U32(static_cast<uint32_t>(layout.gate_at));
  out.U32(static_cast<uint32_t>(layout.up_at));
  out.U32(static_cast<uint32_t>(layout.down_at));
  out.U32(static_cast<uint32_t>(layout.scales_at));
  out.U32(Crc32(record.subspan(kExpertHeaderSize, layout.end - kExpertHeaderSize)));
  out.ZerosUpTo(kExpertHeaderSize);
  std::copy(out.bytes().begin(), out.bytes().end(), record.begin());
}

}  // namespace waste
