// SPDX-License-Identifier: Apache-2.0

#include "container/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/aligned_buffer.h"
#include "base/bytes.h"
#include "container/json_text.h"

namespace waste {
namespace {

constexpr int64_t kPartBytes = int64_t{4} << 20;  // of the trunk, read at once

// Of f16: the exponent field is not all ones.
bool IsFiniteHalf(const uint8_t* bytes) { return (LoadU16(bytes) & 0x7C00) != 0x7C00; }

bool IsFiniteFloat(const uint8_t* bytes) {
  return std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(LoadLittle(bytes, 4))));
}

// The number of the first value in `bytes` that is not finite, or -1.
int64_t FindNotFinite(std::span<const uint8_t> bytes, int64_t value_bytes) {
  const int64_t count = static_cast<int64_t>(bytes.size()) / value_bytes;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const at = &bytes[i * value_bytes];
    if (!(value_bytes == 2 ? IsFiniteHalf(at) : IsFiniteFloat(at))) return i;
  }
  return -1;
}

// What a stretch of a tensor's bytes holds: f16 or f32 values, or integers that cannot be wrong.
struct Stretch {
  int64_t from;  // in bytes after the tensor's offset
  int64_t to;
  int64_t value_bytes;  // 0: integers
  const char* name;
};

Status VerifyStretch(const Container& container, const TrunkEntry& entry, const Stretch& stretch,
                     std::span<uint8_t> buffer, Progress& progress) {
  for (int64_t from = stretch.from; from < stretch.to; from += kPartBytes) {
    WASTE_TRY(progress.CheckCancelled());
    const auto part = buffer.first(std::min(kPartBytes, stretch.to - from));
    WASTE_TRY(container.ReadTrunkPart(entry, from, part));
    const int64_t bad = stretch.value_bytes == 0 ? -1 : FindNotFinite(part, stretch.value_bytes);
    if (bad >= 0)
      return Failure(Code::kCorrupt, JoinPath(container.folder(), "trunk.bin"), ": trunk tensor ",
                     Quote(entry.name), ": ", stretch.name, " ",
                     (from - stretch.from) / stretch.value_bytes + bad,
                     " is not finite; copy the file again");
    progress.Add(static_cast<int64_t>(part.size()));
  }
  return Status();
}

Status VerifyTrunk(const Container& container, std::span<uint8_t> buffer, Progress& progress) {
  for (const TrunkEntry& entry : container.manifest().trunk) {
    const bool quantised = IsQuantised(entry.format);
    const int64_t payload = quantised ? entry.scale_offset - entry.offset : entry.bytes;
    const int64_t value_bytes = quantised ? 0 : entry.format == TrunkFormat::kF32 ? 4 : 2;
    WASTE_TRY(
        VerifyStretch(container, entry, {0, payload, value_bytes, "value"}, buffer, progress));
    WASTE_TRY(
        VerifyStretch(container, entry, {payload, entry.bytes, 2, "scale"}, buffer, progress));
  }
  progress.Log(
      "trunk.bin has no checksum in container format 0: damage that leaves its scales and values "
      "finite cannot be seen");
  return Status();
}

// What ReadCopy does not look at: the scales' values and the padding.
Status VerifyContents(const Container& container, int32_t layer, int32_t expert, int64_t copy,
                      std::span<const uint8_t> record) {
  const ExpertLayout& layout = container.expert_layout();
  const auto fail = [&](const auto&... what) {
    return Failure(Code::kCorrupt, container.CopyPath(layer, copy), ": bank ", layer, ", expert ",
                   expert, ": ", what..., "; copy the file again");
  };
  const auto scales = record.subspan(layout.scales_at, layout.end - layout.scales_at);
  if (const int64_t bad = FindNotFinite(scales, 2); bad >= 0)
    return fail("scale ", bad, " is not finite");
  const auto padding = record.subspan(layout.end);
  const auto used = std::find_if(padding.begin(), padding.end(), [](uint8_t b) { return b != 0; });
  if (used != padding.end())
    return fail("byte ", layout.end + (used - padding.begin()), " of its padding is not zero");
  return Status();
}

Status VerifyBank(const Container& container, int32_t layer, int64_t copy,
                  std::span<uint8_t> record, Progress& progress) {
  const int64_t experts = container.manifest().layers.at(layer).experts;
  for (int32_t expert = 0; expert < experts; ++expert) {
    WASTE_TRY(progress.CheckCancelled());
    WASTE_TRY(container.ReadCopy(layer, expert, copy, record));
    WASTE_TRY(container.ParseRecord(layer, expert, record).status());
    WASTE_TRY(VerifyContents(container, layer, expert, copy, record));
    progress.Add(static_cast<int64_t>(record.size()));
  }
  return Status();
}

int64_t BytesWithCopies(const Container& container) {
  int64_t bytes = container.total_bytes();
  for (const auto& [layer, entry] : container.manifest().layers)
    bytes += (container.copy_count(layer) - 1) * entry.bytes;
  return bytes;
}

}  // namespace

Status VerifyContainer(const Container& container, Progress& progress) {
  progress.SetTotal(BytesWithCopies(container));
  WASTE_TRY(progress.CheckCancelled());
  if (container.rank_file().empty())
    return Failure(Code::kCorrupt, JoinPath(container.folder(), "tokenizer.model"),
                   ": the rank file is missing or empty; copy it again");
  WASTE_ASSIGN(AlignedBuffer buffer,
               AlignedBuffer::Allocate(std::max(kPartBytes, container.record_bytes())));
  WASTE_TRY(VerifyTrunk(container, buffer.bytes(), progress));
  for (const auto& [layer, entry] : container.manifest().layers) {
    const auto record = buffer.bytes().first(entry.record_bytes());
    for (int64_t copy = 0; copy < container.copy_count(layer); ++copy)
      WASTE_TRY(VerifyBank(container, layer, copy, record, progress));
  }
  // Every codebook was read and checked, value by value, when the container was opened; bytes
  // between trunk tensors mean nothing.
  progress.Add(progress.total() - progress.done());
  return Status();
}

}  // namespace waste
