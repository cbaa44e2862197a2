// SPDX-License-Identifier: Apache-2.0
//
// Learns the codebooks of one layer's experts of one kind from a sample of their vectors. First one
// stage after another, k-means on what the stages before left over; then all stages together: the
// sample is encoded by a narrow beam, and each stage's entries become the
// mean of what the other stages left for them. Points are summed in fixed blocks, blocks in order,
// so the books do not depend on the number of threads. One thread calls.

#ifndef WASTE_CORE_CONVERT_CODEBOOK_TRAINING_H_
#define WASTE_CORE_CONVERT_CODEBOOK_TRAINING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "convert/vector_search.h"
#include "parallel/thread_pool.h"
#include "quant/expert_format.h"

namespace waste {

struct TrainingOptions {
  ExpertCodec codec;
  int32_t beam = 16;
  uint64_t seed = 0;
};

// `points` is [n, 8], n >= 1, finite. Returns a book [entries, 8] for each stage, of values that
// f16 holds exactly. Errors: kCancelled.
Result<std::vector<std::vector<float>>> TrainCodebooks(std::span<const float> points,
                                                       const TrainingOptions& options,
                                                       const VectorSearch& search, ThreadPool& pool,
                                                       const Progress& progress);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_CODEBOOK_TRAINING_H_
