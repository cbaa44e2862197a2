// SPDX-License-Identifier: Apache-2.0
//
// A Hugging Face folder to a container v0: config.json, sharded safetensors, tokenizer, chat format
// in; the target folder appears only when it is complete. Deterministic: the same bytes for every
// number of threads. Memory: one layer's experts of one kind and one trunk tensor at a time, never
// the checkpoint. One thread calls; it starts its own team.

#ifndef WASTE_CORE_CONVERT_CONVERT_H_
#define WASTE_CORE_CONVERT_CONVERT_H_

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "os/system.h"

namespace waste {

struct ConvertOptions {
  int32_t threads = 1;
  int32_t stages = 3;             // 2, 3, 4 or 6; 4 with index_bits 6
  int32_t index_bits = 8;         // 8, or 6 (VQ4P)
  int32_t trunk_bits = 4;         // 3, 4 or 8
  int32_t expert_beam = 16;       // partial sums kept by the expert encoder; 1 is greedy
  int64_t quantise_from = 65536;  // elements
  Isa isa = Isa::kBest;
};

// Progress counts tensors; its log says what was left out (vision tensors) and why. Errors name the
// file and tensor: kArgument (options, target exists), kIo, kFormat, kCorrupt, kUnsupported,
// kCancelled, kNoMemory.
Status Convert(const std::string& source, const std::string& target, const ConvertOptions& options,
               Progress& progress);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_CONVERT_H_
