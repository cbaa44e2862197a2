// SPDX-License-Identifier: Apache-2.0
//
// One trunk tensor from a checkpoint to a container, a few rows at a time: what is in memory is the
// encoded tensor and a piece of it as f32. Rows are independent of each other, so the bytes do not
// depend on the number of threads. One thread calls.

#ifndef WASTE_CORE_CONVERT_TRUNK_ENCODER_H_
#define WASTE_CORE_CONVERT_TRUNK_ENCODER_H_

#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "container/writer.h"
#include "convert/plan.h"
#include "parallel/thread_pool.h"

namespace waste {

// Errors name the tensor: kIo, kCorrupt, kUnsupported (a value that is not finite, or too large for
// the format), kCancelled.
Status ConvertTrunkTensor(const std::string& name, const PlannedTensor& tensor, ThreadPool& pool,
                          const Progress& progress, ContainerWriter& writer);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_TRUNK_ENCODER_H_
