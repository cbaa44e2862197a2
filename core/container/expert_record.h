// SPDX-License-Identifier: Apache-2.0
//
// The record of one expert, the unit that the engine reads from disk (docs/format.md, "Expert
// record").
//
//   0        48          up_at       down_at      scales_at            end              size
//   | header | gate ...  | up ...    | down ...   | f16 row scales     | zeros to 4 KiB |
//
// A bank is a file of equal-sized records sorted by expert; the record of expert e starts at e *
// size. This file knows bytes and nothing of what they mean to a model: shapes come from the
// manifest and the config. Parsing never reads outside the given bytes and never asserts on them.
// Pure functions; any thread.

#ifndef WASTE_CORE_CONTAINER_EXPERT_RECORD_H_
#define WASTE_CORE_CONTAINER_EXPERT_RECORD_H_

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "quant/expert_format.h"

namespace waste {

inline constexpr int64_t kExpertHeaderSize = 48;      // bytes
inline constexpr int64_t kExpertAlignment = 4096;     // bytes: what direct I/O needs
inline constexpr uint32_t kExpertMagic = 0x50584557;  // "WEXP"

// inner = moe_intermediate_size, outer = the experts' input size (latent or hidden). All layers of
// a model have the same.
struct ExpertDims {
  int64_t inner = 0;
  int64_t outer = 0;
};

// Where a record's parts start, in bytes from its start. Nothing lies between them.
struct ExpertLayout {
  ExpertCodec codec;
  ExpertDims dims;
  int64_t gate_at = 0;  // always kExpertHeaderSize
  int64_t up_at = 0;
  int64_t down_at = 0;
  int64_t scales_at = 0;  // gate [inner], up [inner], down [outer]
  int64_t end = 0;
  int64_t record_bytes = 0;  // end, rounded up to kExpertAlignment

  int64_t up_scales_at() const { return scales_at + 2 * dims.inner; }
  int64_t down_scales_at() const { return scales_at + 4 * dims.inner; }
};

// Nothing if a dimension is no multiple of 8 between 8 and 2^26, or the record's offsets would not
// fit its 32-bit fields.
std::optional<ExpertLayout> MakeExpertLayout(const ExpertCodec& codec, const ExpertDims& dims);

// What a header says that its place and the layout do not.
struct ExpertHeader {
  int32_t first_codebook;  // the book of (kind, stage) is this + kind * stages + stage
  uint32_t crc;            // zlib's crc32 over [kExpertHeaderSize, end)
};

// Parses and checks the header at the start of `record` (the whole record). `layer` and `expert`
// are what the caller asked the disk for; a record that says otherwise is kCorrupt, never answered
// from. Errors: kFormat (no expert record), kUnsupported (a format or flag that is not built),
// kCorrupt (anything inconsistent), naming layer and expert.
Result<ExpertHeader> ParseExpertHeader(std::span<const uint8_t> record, int32_t layer,
                                       int32_t expert, const ExpertLayout& layout,
                                       int64_t codebook_count);

// Computes the crc over a record that ParseExpertHeader has accepted. Error: kCorrupt.
Status CheckExpertCrc(std::span<const uint8_t> record, int32_t layer, int32_t expert,
                      const ExpertLayout& layout, const ExpertHeader& header);

// Fills in the header of `record`, whose parts are in place: the crc is computed here. `layer`,
// `expert` and `first_codebook` fit 16 bits.
void WriteExpertHeader(int32_t layer, int32_t expert, int64_t first_codebook,
                       const ExpertLayout& layout, std::span<uint8_t> record);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_EXPERT_RECORD_H_
