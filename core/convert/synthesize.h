// SPDX-License-Identifier: Apache-2.0
//
// Writes a container of random weights for a model's shape, as fast as the drive takes it: for
// measuring speed and memory at full size without anybody's weights. Its answers mean nothing and
// its activations are finite. The same model, options and seed give the same bytes. One thread
// calls; memory: one expert and one trunk tensor at a time.

#ifndef WASTE_CORE_CONVERT_SYNTHESIZE_H_
#define WASTE_CORE_CONVERT_SYNTHESIZE_H_

#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "model/synthetic_model.h"

namespace waste {

// `target` must not exist, and appears only when it is complete. Progress counts bytes. Errors:
// kArgument, kIo (the drive is full, say), kCancelled.
Status Synthesize(const SyntheticModel& model, const std::string& target, Progress& progress);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_SYNTHESIZE_H_
