// SPDX-License-Identifier: Apache-2.0
//
// Names of tensors in a checkpoint and in a container. They are the same, except that the names of
// DeepSeek's modelling code (mlp.gate, mlp.experts.E.gate_proj, mlp.shared_experts) become those of
// the Kimi releases (block_sparse_moe.gate, block_sparse_moe.experts.E.w1, ...). Pure functions.

#ifndef WASTE_CORE_CONVERT_HF_NAMES_H_
#define WASTE_CORE_CONVERT_HF_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace waste {

inline constexpr int32_t kExpertKinds = 3;  // gate, up, down, in the order of a record

std::string ContainerName(std::string_view source_name);

// Whether the tensor belongs to the vision tower or its projector.
bool IsVisionName(std::string_view name);

// Whether the tensor belongs to a routed expert ("shared_experts" do not).
bool IsExpertName(std::string_view name);

struct ExpertName {
  int32_t layer;
  int32_t expert;
  int32_t kind;  // 0 gate, 1 up, 2 down
};

// Reads PREFIXmodel.layers.L.block_sparse_moe.experts.E.{w1,w3,w2}.weight, a container's name;
// nothing if it is not of that form.
std::optional<ExpertName> ParseExpertName(std::string_view container_name, std::string_view prefix);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_HF_NAMES_H_
