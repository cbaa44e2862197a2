// SPDX-License-Identifier: Apache-2.0

#include "convert/expert_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/half.h"
#include "container/json_text.h"
#include "convert/codebook_training.h"
#include "convert/random.h"

namespace waste {
namespace {

constexpr int64_t kSampleVectors = 300'000;  // of a layer and kind
constexpr int64_t kSampleExperts = 12;       // at least, if there are as many
constexpr float kLeastScale = 1e-8f;
constexpr float kLargestHalf = 65504;
constexpr int64_t kGrainVectors = 1024;

float LargestMagnitude(std::span<const float> row) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::fabs(value));
  return largest;
}

}  // namespace

double ExpertError::relative() const {
  return weight_squares > 0 ? std::sqrt(error_squares / weight_squares) : 0;
}

// Fills weights_ and scales_.
Status ExpertEncoder::ReadMatrix(const SourceTensor& tensor) {
  rows_ = tensor.shape[0];
  columns_ = tensor.shape[1];
  weights_.resize(static_cast<size_t>(tensor.elements));
  scales_.resize(static_cast<size_t>(rows_));
  WASTE_TRY(ReadElements(tensor, 0, weights_));
  for (int64_t r = 0; r < rows_; ++r) {
    const std::span<const float> row(weights_.data() + r * columns_, static_cast<size_t>(columns_));
    const bool finite =
        std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); });
    const float largest = finite ? LargestMagnitude(row) : 0;
    if (!finite || largest > kLargestHalf) {
      return Failure(Code::kUnsupported, tensor.file->path(), ": tensor ", Quote(tensor.name),
                     ", row ", r, ": ",
                     finite ? "its largest magnitude is above 65504, the largest f16"
                            : "a value is not finite");
    }
    scales_[static_cast<size_t>(r)] = std::max(largest, kLeastScale);
  }
  return Status();
}

// Fills sample_ with vectors of some experts of the layer, evenly from each: all of their vectors
// if they are few, else a random choice.
Status ExpertEncoder::SampleKind(int32_t layer, size_t kind) {
  const std::vector<ExpertSources>& experts = plan_.experts.at(layer);
  const int64_t count = static_cast<int64_t>(experts.size());
  const int64_t vectors = experts[0][kind]->elements / kVectorSize;  // of one matrix
  const int64_t wanted = std::max(kSampleExperts, CeilDivide(kSampleVectors, vectors));
  const int64_t taken = std::min(count, wanted);
  const int64_t quota = std::min(vectors, kSampleVectors / taken);
  sample_.clear();
  sample_.reserve(static_cast<size_t>(taken * quota * kVectorSize));
  for (int64_t i = 0; i < taken; ++i) {
    WASTE_TRY(progress_.CheckCancelled());
    const int64_t expert = i * count / taken;
    WASTE_TRY(ReadMatrix(*experts[static_cast<size_t>(expert)][kind]));
    const int64_t matrix = layer * kExpertKinds + static_cast<int64_t>(kind);
    Random random(static_cast<uint64_t>(matrix << 20 | expert));
    int64_t left = quota;
    for (int64_t v = 0; v < vectors; ++v) {
      if (random.Below(vectors - v) >= left) continue;  // Knuth's algorithm S
      --left;
      const float scale = scales_[static_cast<size_t>(v * kVectorSize / columns_)];
      for (int64_t j = 0; j < kVectorSize; ++j)
        sample_.push_back(weights_[static_cast<size_t>(v * kVectorSize + j)] / scale);
    }
  }
  return Status();
}

Status ExpertEncoder::TrainKind(int32_t layer, size_t kind) {
  WASTE_TRY(SampleKind(layer, kind));
  const TrainingOptions training = {plan_.codec, beam_,
                                    static_cast<uint64_t>(layer * kExpertKinds) + kind};
  WASTE_ASSIGN(books_[kind], TrainCodebooks(sample_, training, search_, pool_, progress_));
  beam_books_[kind] = MakeBeamBooks(books_[kind]);
  for (const std::vector<float>& book : books_[kind]) {
    WASTE_ASSIGN(const int64_t number, writer_.AddCodebook(book));
    if (kind == 0 && &book == &books_[kind].front()) codebook_base_ = number;
  }
  return Status();
}

// Encodes row r and notes what it lost, measured with the scale that the record will hold.
void ExpertEncoder::EncodeRow(int64_t r, size_t kind, std::vector<uint8_t>& indices) {
  const size_t stages = books_[kind].size();
  const float* row = weights_.data() + r * columns_;
  const float scale = scales_[static_cast<size_t>(r)];
  const float stored_scale = HalfToFloat(FloatToHalf(scale));
  double error = 0, squares = 0;
  for (int64_t v = 0; v < columns_ / kVectorSize; ++v) {
    const float* weights = row + v * kVectorSize;
    std::array<float, kVectorSize> x;
    for (size_t j = 0; j < x.size(); ++j) x[j] = weights[j] / scale;
    std::array<uint8_t, kMaxStages> chosen;
    search_.encode(beam_books_[kind], x.data(), beam_, chosen.data());
    StoreExpertIndices(plan_.codec, columns_, r, v, {chosen.data(), stages}, indices);

    std::array<float, kVectorSize> sum = {};
    for (size_t s = 0; s < stages; ++s) {
      const float* entry = books_[kind][s].data() + chosen[s] * kVectorSize;
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += entry[j];
    }
    for (size_t j = 0; j < sum.size(); ++j) {
      const double weight = static_cast<double>(weights[j]);
      const double lost = weight - static_cast<double>(stored_scale * sum[j]);
      error += lost * lost;
      squares += weight * weight;
    }
  }
  row_errors_[static_cast<size_t>(r)] = error;
  row_squares_[static_cast<size_t>(r)] = squares;
}

Status ExpertEncoder::EncodeMatrix(const SourceTensor& tensor, size_t kind,
                                   std::vector<uint8_t>& indices, std::vector<uint8_t>& scales) {
  WASTE_TRY(progress_.CheckCancelled());
  WASTE_TRY(ReadMatrix(tensor));
  indices.assign(static_cast<size_t>(ExpertIndexBytes(plan_.codec, rows_, columns_)), 0);
  scales.resize(static_cast<size_t>(rows_ * 2));
  row_errors_.resize(static_cast<size_t>(rows_));
  row_squares_.resize(static_cast<size_t>(rows_));
  const int64_t grain = std::max<int64_t>(1, kGrainVectors * kVectorSize / columns_);
  pool_.Run(rows_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end && !progress_.cancelled(); ++r) EncodeRow(r, kind, indices);
  });
  WASTE_TRY(progress_.CheckCancelled());
  for (int64_t r = 0; r < rows_; ++r) {
    StoreLittle(scales.data() + r * 2, FloatToHalf(scales_[static_cast<size_t>(r)]), 2);
    error_.error_squares += row_errors_[static_cast<size_t>(r)];
    error_.weight_squares += row_squares_[static_cast<size_t>(r)];
  }
  error_.vectors += tensor.elements / kVectorSize;
  progress_.Add(1);
  return Status();
}

Status ExpertEncoder::ConvertLayer(int32_t layer) {
  for (size_t kind = 0; kind < kExpertKinds; ++kind) WASTE_TRY(TrainKind(layer, kind));
  WASTE_TRY(writer_.BeginBank(layer, codebook_base_, plan_.codec));
  EncodedExpert expert;
  for (const ExpertSources& sources : plan_.experts.at(layer)) {
    WASTE_TRY(EncodeMatrix(*sources[0], 0, expert.gate, expert.gate_scales));
    WASTE_TRY(EncodeMatrix(*sources[1], 1, expert.up, expert.up_scales));
    WASTE_TRY(EncodeMatrix(*sources[2], 2, expert.down, expert.down_scales));
    WASTE_TRY(writer_.AddExpert(expert));
  }
  return writer_.EndBank();
}

}  // namespace waste
