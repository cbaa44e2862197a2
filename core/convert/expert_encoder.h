// SPDX-License-Identifier: Apache-2.0
//
// Expert matrices from a checkpoint to a bank: a layer's codebooks are trained on a sample of its
// experts, then each expert is read, encoded and written, one at a time. Rows are divided by their
// largest magnitude (the f32 one; the record holds it as f16). Bytes do not depend on the number of
// threads. One thread calls.

#ifndef WASTE_CORE_CONVERT_EXPERT_ENCODER_H_
#define WASTE_CORE_CONVERT_EXPERT_ENCODER_H_

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "container/writer.h"
#include "convert/plan.h"
#include "convert/vector_search.h"
#include "parallel/thread_pool.h"

namespace waste {

// What encoding lost, over all matrices so far.
struct ExpertError {
  double error_squares = 0;  // of weight minus decoded weight
  double weight_squares = 0;
  int64_t vectors = 0;

  double relative() const;  // root of the ratio; 0 without weights
};

class ExpertEncoder {
 public:
  // All must outlive the encoder.
  ExpertEncoder(const ConversionPlan& plan, const ConvertOptions& options,
                const VectorSearch& search, ThreadPool& pool, Progress& progress,
                ContainerWriter& writer)
      : plan_(plan),
        beam_(options.expert_beam),
        search_(search),
        pool_(pool),
        progress_(progress),
        writer_(writer) {}

  // Trains the books of one layer and writes them and its bank. Errors name the tensor: kIo,
  // kCorrupt, kUnsupported (a value that is not finite, or a row too large for f16), kCancelled.
  Status ConvertLayer(int32_t layer);

  const ExpertError& error() const { return error_; }

 private:
  Status ReadMatrix(const SourceTensor& tensor);
  Status SampleKind(int32_t layer, size_t kind);
  Status TrainKind(int32_t layer, size_t kind);
  Status EncodeMatrix(const SourceTensor& tensor, size_t kind, std::vector<uint8_t>& indices,
                      std::vector<uint8_t>& scales);
  void EncodeRow(int64_t r, size_t kind, std::vector<uint8_t>& indices);

  const ConversionPlan& plan_;
  int32_t beam_;
  const VectorSearch& search_;
  ThreadPool& pool_;
  Progress& progress_;
  ContainerWriter& writer_;

  int64_t codebook_base_ = 0;
  std::vector<std::vector<float>> books_[kExpertKinds];  // of the layer: by kind, then stage
  BeamBooks beam_books_[kExpertKinds];
  std::vector<float> sample_;  // [n, 8]

  // The matrix in work.
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  std::vector<float> weights_;      // [rows, columns]
  std::vector<float> scales_;       // [rows]
  std::vector<double> row_errors_;  // [rows], squares
  std::vector<double> row_squares_;
  ExpertError error_;
};

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_EXPERT_ENCODER_H_
