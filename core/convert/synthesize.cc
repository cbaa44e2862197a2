// SPDX-License-Identifier: Apache-2.0

#include "convert/synthesize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/half.h"
#include "container/expert_record.h"
#include "container/writer.h"
#include "convert/random.h"
#include "tokenizer/rank_file.h"

namespace waste {
namespace {

constexpr size_t kPiece = size_t{1} << 22;  // bytes
constexpr int64_t kQuantiseFrom = 65536;    // elements, as the converter does by default

FormatChoice Formats() {
  return {.matrix =
              [](size_t, int64_t elements) {
                return elements < kQuantiseFrom ? TrunkFormat::kF32 : TrunkFormat::kQ4G;
              },
          .norm = [](size_t) { return TrunkFormat::kF32; }};
}

float Uniform(Random& random) {  // in [-1, 1)
  return static_cast<float>(static_cast<int64_t>(random.Next() >> 40) - (1 << 23)) / (1 << 23);
}

void FillRandom(Random& random, std::span<uint8_t> out) {
  size_t at = 0;
  for (; at + 8 <= out.size(); at += 8) StoreLittle(out.data() + at, random.Next(), 8);
  for (; at < out.size(); ++at) out[at] = static_cast<uint8_t>(random.Next());
}

// `count` equal f16 scales. Uniform codes of a quantised row then have the spread asked for.
std::vector<uint8_t> Scales(int64_t count, float value) {
  std::vector<uint8_t> scales(static_cast<size_t>(2 * count));
  for (size_t i = 0; i < scales.size(); i += 2) StoreLittle(&scales[i], FloatToHalf(value), 2);
  return scales;
}

// Codes reach one further below zero than above, so their mean is not zero: with scales of one sign
// every matrix would push every token the same way, and after a few of them all tokens would be
// alike and choose the same experts.
void FlipSigns(Random& random, std::span<uint8_t> scales) {
  for (size_t i = 1; i < scales.size(); i += 2)
    scales[i] ^= static_cast<uint8_t>(random.Next() >> 63 << 7);
}

// The largest code of a quantised format.
float LargestCode(TrunkFormat format) {
  switch (format) {
    case TrunkFormat::kQ8G:
      return 127;
    case TrunkFormat::kQ4G:
      return 7;
    default:
      return 3;
  }
}

// Special tokens stand at the end of the vocabulary, as in the releases.
int32_t FirstSpecial(const SyntheticModel& model) {
  return static_cast<int32_t>(model.vocab - (model.vocab > 4096 ? 256 : 64));
}

// All single bytes, then all pairs of them, then pairs with a third: each is two tokens before it.
std::vector<std::string> Tokens(int32_t count) {
  std::vector<std::string> tokens = {""};
  for (size_t first = 0; std::ssize(tokens) <= count; ++first)
    for (int byte = 0; byte < 256; ++byte)
      tokens.push_back(tokens[first] + static_cast<char>(byte));
  tokens.erase(tokens.begin());
  tokens.resize(static_cast<size_t>(count));
  return tokens;
}

class Synthesizer {
 public:
  Synthesizer(const SyntheticModel& model, Progress& progress)
      : model_(model), progress_(progress), random_(model.seed) {}

  Status Run(const std::string& target);

 private:
  Status AddTrunk();
  Status AddTensor(const std::string& name, const SyntheticTensor& tensor);
  Status AddBank(int32_t layer);
  Status AddText();
  Status Advance(int64_t bytes);
  void FillIndices(int64_t rows, std::vector<uint8_t>& indices);

  const SyntheticModel& model_;
  Progress& progress_;
  Random random_;
  SyntheticTrunk trunk_;
  std::optional<ExpertLayout> layout_;
  std::unique_ptr<ContainerWriter> writer_;
};

int64_t Elements(const SyntheticTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= size;
  return elements;
}

int64_t BytesOf(const SyntheticTensor& tensor) {
  const int64_t columns = tensor.shape.back();
  return Elements(tensor) / columns * TrunkRowBytes(tensor.format, columns);
}

Status Synthesizer::Run(const std::string& target) {
  layout_ = MakeExpertLayout(model_.codec, {model_.inner, model_.expert_outer()});
  if (!layout_.has_value())
    return Failure(Code::kArgument, "experts of ", model_.inner, " by ", model_.expert_outer(),
                   " are no record of the container format");
  trunk_ = SyntheticTrunkOf(model_, Formats());
  int64_t total = 0;
  for (auto& [name, tensor] : trunk_) {
    if (name.ends_with("embed_tokens.weight") || name.ends_with("lm_head.weight"))
      tensor.format = TrunkFormat::kQ8G;
    total += BytesOf(tensor);
  }
  const int64_t banks = std::max<int64_t>(0, model_.layers - model_.first_moe_layer);
  progress_.SetTotal(total + banks * model_.experts * layout_->record_bytes);
  WASTE_ASSIGN(writer_, ContainerWriter::Create(target));
  WASTE_TRY(AddTrunk());
  for (int64_t layer = model_.first_moe_layer; layer < model_.layers; ++layer)
    WASTE_TRY(AddBank(static_cast<int32_t>(layer)));
  WASTE_TRY(AddText());
  nlohmann::ordered_json config = SyntheticConfig(model_);
  config["eos_token_id"] = FirstSpecial(model_) + 2;  // <|end_of_msg|>
  return writer_->Finish(model_.arch(), model_.prefix(), config);
}

Status Synthesizer::Advance(int64_t bytes) {
  progress_.Add(bytes);
  return progress_.CheckCancelled();
}

Status Synthesizer::AddTrunk() {
  for (const auto& [name, tensor] : trunk_) WASTE_TRY(AddTensor(name, tensor));
  return Status();
}

Status Synthesizer::AddTensor(const std::string& name, const SyntheticTensor& tensor) {
  std::vector<uint8_t> payload(static_cast<size_t>(BytesOf(tensor))), scales;
  if (IsQuantised(tensor.format)) {
    // An embedding takes seconds: a cancel is asked for in between.
    for (size_t at = 0; at < payload.size(); at += kPiece) {
      WASTE_TRY(progress_.CheckCancelled());
      FillRandom(random_, std::span(payload).subspan(at, std::min(kPiece, payload.size() - at)));
    }
    const int64_t rows = Elements(tensor) / tensor.shape.back();
    scales = Scales(rows * TrunkRowGroups(tensor.shape.back()),
                    tensor.spread / LargestCode(tensor.format));
    FlipSigns(random_, scales);
  } else {
    for (int64_t i = 0; i < Elements(tensor); ++i) {
      const bool padding = tensor.zeros_from >= 0 && i >= tensor.zeros_from;
      const float value = padding ? 0.0f : tensor.mean + tensor.spread * Uniform(random_);
      StoreLittle(payload.data() + 4 * i, std::bit_cast<uint32_t>(value), 4);
    }
  }
  WASTE_TRY(writer_->AddTrunk(name, tensor.format, tensor.shape, payload, scales));
  return Advance(std::ssize(payload));
}

// Codebooks of three stages with entries around one and scales around 0.1 keep an expert's output
// about as large as its input, at any width.
Status Synthesizer::AddBank(int32_t layer) {
  int64_t base = -1;
  for (int32_t book = 0; book < 3 * model_.codec.stages; ++book) {
    std::vector<float> entries(static_cast<size_t>(model_.codec.entries * kVectorSize));
    for (float& entry : entries) entry = Uniform(random_);
    WASTE_ASSIGN(const int64_t number, writer_->AddCodebook(entries));
    if (book == 0) base = number;
  }
  WASTE_TRY(writer_->BeginBank(layer, base, model_.codec));
  const ExpertDims& dims = layout_->dims;
  const auto indices = [&](int64_t rows, int64_t columns) {
    return std::vector<uint8_t>(static_cast<size_t>(ExpertIndexBytes(model_.codec, rows, columns)));
  };
  const auto scale = [&](int64_t columns) { return 1.0f / std::sqrt(static_cast<float>(columns)); };
  EncodedExpert expert{.gate = indices(dims.inner, dims.outer),
                       .up = indices(dims.inner, dims.outer),
                       .down = indices(dims.outer, dims.inner),
                       .gate_scales = Scales(dims.inner, scale(dims.outer)),
                       .up_scales = Scales(dims.inner, scale(dims.outer)),
                       .down_scales = Scales(dims.outer, scale(dims.inner))};
  for (int64_t e = 0; e < model_.experts; ++e) {
    FillIndices(dims.inner, expert.gate);
    FillIndices(dims.inner, expert.up);
    FillIndices(dims.outer, expert.down);
    WASTE_TRY(writer_->AddExpert(expert));
    WASTE_TRY(Advance(layout_->record_bytes));
  }
  return writer_->EndBank();
}

// Rows come in blocks of 64 that share a vector's indices; those beyond the last row are zero.
void Synthesizer::FillIndices(int64_t rows, std::vector<uint8_t>& indices) {
  FillRandom(random_, indices);
  const int64_t tail = rows % kIndexBlock;
  if (tail == 0) return;
  const int64_t blocks = (rows + kIndexBlock - 1) / kIndexBlock;
  const int64_t block_bytes = std::ssize(indices) / blocks;
  const int64_t row_bytes = model_.codec.bytes_per_vector();
  for (int64_t at = (blocks - 1) * block_bytes; at < std::ssize(indices);
       at += kIndexBlock * row_bytes)
    std::fill_n(indices.begin() + at + tail * row_bytes, (kIndexBlock - tail) * row_bytes,
                uint8_t{0});
}

Status Synthesizer::AddText() {
  const int32_t first = FirstSpecial(model_);
  const std::string ranks = PrintRankFile(Tokens(first));
  WASTE_TRY(writer_->AddFile("tokenizer.model", std::vector<uint8_t>(ranks.begin(), ranks.end())));
  std::vector<SpecialToken> specials;
  for (const char* text : {"[BOS]", "[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>"})
    specials.push_back({first + static_cast<int32_t>(specials.size()), text});
  return writer_->AddSpecials(specials);
}

}  // namespace

Status Synthesize(const SyntheticModel& model, const std::string& target, Progress& progress) {
  return Synthesizer(model, progress).Run(target);
}

}  // namespace waste
