// SPDX-License-Identifier: Apache-2.0
//
// What a conversion will do, decided and checked before a byte is written: which tensor becomes a
// trunk tensor of which format, which is a matrix of which expert, what is left out. A plan that
// exists is complete: every expert of every layer has its three matrices in the shapes that the
// config says. Reads headers and config, no weights. Immutable; any thread.

#ifndef WASTE_CORE_CONVERT_PLAN_H_
#define WASTE_CORE_CONVERT_PLAN_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "convert/convert.h"
#include "convert/hf_names.h"
#include "convert/safetensors.h"
#include "model/config.h"
#include "quant/expert_format.h"
#include "quant/trunk_format.h"

namespace waste {

struct PlannedTensor {
  const SourceTensor* source;
  TrunkFormat format;
  std::vector<int64_t> shape;  // as the manifest says it: at least one size
};

using ExpertSources = std::array<const SourceTensor*, kExpertKinds>;

struct ConversionPlan {
  std::string arch;
  std::string tensor_prefix;
  nlohmann::ordered_json config;  // of the manifest
  ExpertCodec codec;
  ModelConfig model;
  std::map<std::string, PlannedTensor> trunk;             // by container name
  std::map<int32_t, std::vector<ExpertSources>> experts;  // by layer, then expert
  int64_t vision_tensors = 0;                             // left out
  int64_t extra_expert_tensors = 0;  // left out: experts of layers beyond the model's

  int64_t tensor_count() const;
};

// `checkpoint` must outlive the plan. Errors name file, tensor or key: kArgument (options), kIo,
// kFormat, kCorrupt (a tensor missing or of the wrong shape), kUnsupported (another family, packed
// weights).
Result<ConversionPlan> PlanConversion(const std::string& folder, const Checkpoint& checkpoint,
                                      const ConvertOptions& options);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_PLAN_H_
