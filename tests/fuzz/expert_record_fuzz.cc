// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an expert record, with any codec and number of codebooks (the first two bytes
// choose). A record that is accepted is decoded to its last row, under the sanitizers' eyes.

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "container/expert_record.h"

namespace waste {
namespace {

constexpr ExpertCodec kCodecs[] = {{IndexKind::kByte, 2, 256},
                                   {IndexKind::kByte, 3, 256},
                                   {IndexKind::kByte, 4, 256},
                                   {IndexKind::kByte, 6, 256},
                                   {IndexKind::kPacked6, 4, 64}};

// The header is what the input says; the rest of the record repeats the input's other bytes.
std::vector<uint8_t> MakeRecord(std::span<const uint8_t> input, int64_t size) {
  std::vector<uint8_t> record(static_cast<size_t>(size));
  for (size_t i = 0; i < record.size() && !input.empty(); ++i) record[i] = input[i % input.size()];
  return record;
}

void DecodeLastRow(const ExpertMatrix& matrix) {
  std::vector<float> row(static_cast<size_t>(matrix.columns));
  DecodeExpertRow(matrix, matrix.rows - 1, row);
}

void Check(std::span<const uint8_t> input) {
  const ExpertCodec& codec = kCodecs[input[0] % std::size(kCodecs)];
  const int64_t books = input[1];
  const auto layout = MakeExpertLayout(codec, {.inner = 8, .outer = 16});
  WASTE_CHECK(layout.has_value());
  const auto raw = ParseExpertHeader(input.subspan(2), 3, 5, *layout, books);
  WASTE_CHECK(raw.ok() || !raw.status().message().empty());
  const std::vector<uint8_t> record = MakeRecord(input.subspan(2), layout->record_bytes);
  const auto header = ParseExpertHeader(record, 3, 5, *layout, books);
  if (!header.ok()) return;
  WASTE_CHECK(header->first_codebook + 3 * codec.stages <= books);
  (void)CheckExpertCrc(record, 3, 5, *layout, *header).ok();
  const std::vector<float> values(static_cast<size_t>(books * codec.entries * kVectorSize));
  ExpertMatrix gate{.codec = codec,
                    .rows = 8,
                    .columns = 16,
                    .indices = record.data() + layout->gate_at,
                    .scales = record.data() + layout->scales_at};
  for (int32_t stage = 0; stage < codec.stages; ++stage)
    gate.books[stage] =
        values.data() + (header->first_codebook + stage) * codec.entries * kVectorSize;
  DecodeLastRow(gate);
}

}  // namespace
}  // namespace waste

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 2) waste::Check({data, size});
  return 0;
}
