// SPDX-License-Identifier: Apache-2.0

#include "convert/plan.h"

#include <utility>

#include "container/json_text.h"
#include "convert/hf_config.h"
#include "convert/vector_search.h"

namespace waste {
namespace {

constexpr char kTextModelPrefix[] = "language_model.";
constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr char kHead[] = "lm_head.weight";
constexpr char kFinalNorm[] = "model.norm.weight";
constexpr size_t kMaxShape = 4;           // sizes of a trunk tensor
constexpr int32_t kMaxExpertId = 0xFFFF;  // a record holds 16 bits

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Status CheckOptions(const ConvertOptions& options) {
  if (options.threads < 1)
    return Failure(Code::kArgument, "threads is ", options.threads, "; use 1 or more");
  if (options.index_bits != 8 && options.index_bits != 6)
    return Failure(Code::kArgument, "index_bits is ", options.index_bits, "; use 8 or 6");
  if (options.index_bits == 6 && options.stages != 4)
    return Failure(Code::kArgument, "index_bits 6 needs stages 4, not ", options.stages);
  if (options.stages != 2 && options.stages != 3 && options.stages != 4 && options.stages != 6)
    return Failure(Code::kArgument, "stages is ", options.stages, "; use 2, 3, 4 or 6");
  if (options.trunk_bits != 3 && options.trunk_bits != 4 && options.trunk_bits != 8)
    return Failure(Code::kArgument, "trunk_bits is ", options.trunk_bits, "; use 3, 4 or 8");
  if (options.expert_beam < 1 || options.expert_beam > kMaxBeam) {
    return Failure(Code::kArgument, "expert_beam is ", options.expert_beam, "; use 1 to ",
                   kMaxBeam);
  }
  if (options.quantise_from < 0)
    return Failure(Code::kArgument, "quantise_from is ", options.quantise_from, "; use 0 or more");
  return Status();
}

TrunkFormat FormatOf(const std::string& name, const SourceTensor& tensor,
                     const ConvertOptions& options) {
  if (tensor.shape.size() <= 1 || tensor.elements < options.quantise_from) return TrunkFormat::kF32;
  if (EndsWith(name, "embed_tokens.weight") || EndsWith(name, kHead)) return TrunkFormat::kQ8G;
  return options.trunk_bits == 8   ? TrunkFormat::kQ8G
         : options.trunk_bits == 4 ? TrunkFormat::kQ4G
                                   : TrunkFormat::kQ3G;
}

Status AddTrunk(const std::string& name, const SourceTensor& tensor, const ConvertOptions& options,
                ConversionPlan& plan) {
  WASTE_TRY(CheckReadable(tensor));
  if (tensor.shape.size() > kMaxShape) {
    return Failure(Code::kUnsupported, tensor.file->path(), ": tensor ", Quote(tensor.name),
                   " has ", tensor.shape.size(), " dimensions; a container holds at most ",
                   kMaxShape);
  }
  PlannedTensor planned = {&tensor, FormatOf(name, tensor, options), tensor.shape};
  if (planned.shape.empty()) planned.shape = {1};
  const auto [other, is_new] = plan.trunk.emplace(name, std::move(planned));
  if (is_new) return Status();
  return Failure(Code::kCorrupt, tensor.file->path(), ": tensors ", Quote(tensor.name), " and ",
                 Quote(other->second.source->name), " are the same one of a container");
}

// Where each expert's matrices are; which layers and experts must exist is not known yet.
using FoundExperts = std::map<int32_t, std::map<int32_t, ExpertSources>>;

Status AddExpert(const std::string& name, const SourceTensor& tensor, const std::string& prefix,
                 FoundExperts& found) {
  WASTE_TRY(CheckReadable(tensor));
  const std::optional<ExpertName> expert = ParseExpertName(name, prefix);
  if (!expert || expert->expert > kMaxExpertId) {
    return Failure(Code::kUnsupported, tensor.file->path(), ": tensor ", Quote(tensor.name),
                   " is no expert matrix that this version knows (experts.E.w1, w3, w2)");
  }
  const SourceTensor*& source =
      found[expert->layer][expert->expert][static_cast<size_t>(expert->kind)];
  if (source != nullptr) {
    return Failure(Code::kCorrupt, tensor.file->path(), ": tensors ", Quote(tensor.name), " and ",
                   Quote(source->name), " are the same one of a container");
  }
  source = &tensor;
  return Status();
}

Status SortTensors(const Checkpoint& checkpoint, const ConvertOptions& options,
                   ConversionPlan& plan, FoundExperts& found) {
  for (const auto& [source_name, tensor] : checkpoint.tensors()) {
    if (IsVisionName(source_name)) {
      ++plan.vision_tensors;
      continue;
    }
    const std::string name = ContainerName(source_name);
    if (IsExpertName(name)) {
      WASTE_TRY(AddExpert(name, tensor, plan.tensor_prefix, found));
    } else {
      WASTE_TRY(AddTrunk(name, tensor, options, plan));
    }
  }
  return Status();
}

// A manifest that says of the model what the finished container's will say. It promises experts for
// every layer: which are really there is checked afterwards, where a missing one can be named.
Manifest DescribeModel(const ConversionPlan& plan) {
  constexpr int32_t kMostLayers = 128;
  Manifest manifest;
  manifest.arch = plan.arch;
  manifest.tensor_prefix = plan.tensor_prefix;
  manifest.config = plan.config;
  manifest.has_experts = true;
  manifest.codec = plan.codec;
  const nlohmann::ordered_json* count = JsonMember(plan.config, "num_experts");
  const int64_t experts = count == nullptr ? 0 : JsonInteger(*count).value_or(0);
  for (int32_t layer = 0; layer < kMostLayers; ++layer)
    manifest.layers[layer] = {"experts-L" + std::to_string(layer) + ".bin", experts, 0, 0};
  for (const auto& [name, tensor] : plan.trunk)
    manifest.trunk.push_back({name, tensor.format, tensor.shape, 0, -1, 0});
  return manifest;
}

// The shape of an expert's matrix of this kind.
std::vector<int64_t> ExpertShape(const ModelConfig& model, int32_t kind) {
  const int64_t inner = model.moe.inner, outer = model.expert_outer();
  return kind == 2 ? std::vector<int64_t>{outer, inner} : std::vector<int64_t>{inner, outer};
}

std::string PrintShape(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += text.empty() ? "[" : ", ";
    text += std::to_string(size);
  }
  text += ']';
  return text;
}

Status CheckShape(const SourceTensor& tensor, const std::vector<int64_t>& shape) {
  if (tensor.shape == shape) return Status();
  return Failure(Code::kCorrupt, tensor.file->path(), ": tensor ", Quote(tensor.name), " is ",
                 PrintShape(tensor.shape), "; config.json says ", PrintShape(shape));
}

Status TakeLayer(int32_t layer, FoundExperts& found, ConversionPlan& plan) {
  std::map<int32_t, ExpertSources>& experts = found[layer];
  const int64_t count = plan.model.moe.experts;
  std::vector<ExpertSources>& taken = plan.experts[layer];
  for (int32_t e = 0; e < count; ++e) {
    const ExpertSources& sources = experts[e];
    for (int32_t kind = 0; kind < kExpertKinds; ++kind) {
      const SourceTensor* source = sources[static_cast<size_t>(kind)];
      constexpr const char* kNames[kExpertKinds] = {"w1", "w3", "w2"};
      if (source == nullptr) {
        return Failure(Code::kCorrupt, "the checkpoint lacks ", kNames[kind], " of expert ", e,
                       " of layer ", layer, "; is a shard missing?");
      }
      WASTE_TRY(CheckShape(*source, ExpertShape(plan.model, kind)));
    }
    taken.push_back(sources);
  }
  if (static_cast<int64_t>(experts.size()) > count) {
    return Failure(Code::kCorrupt, "layer ", layer, " has experts up to ", experts.rbegin()->first,
                   "; config.json says there are ", count);
  }
  found.erase(layer);
  return Status();
}

// Moves the experts of all layers into the plan and says what is over.
Status TakeExperts(FoundExperts found, ConversionPlan& plan) {
  const ModelConfig& model = plan.model;
  for (int32_t layer = 0; layer < model.layers; ++layer) {
    if (model.is_moe(layer)) {
      WASTE_TRY(TakeLayer(layer, found, plan));
    } else if (found.contains(layer)) {
      return Failure(Code::kCorrupt, "layer ", layer, " has experts; config.json says it is dense");
    }
  }
  for (const auto& [layer, experts] : found) {
    for (const auto& [expert, sources] : experts) {
      for (const SourceTensor* source : sources) {
        if (source != nullptr) ++plan.extra_expert_tensors;
      }
    }
  }
  return Status();
}

// Without these no reader can start, whatever the family.
Status CheckEnds(const ConversionPlan& plan, const std::string& folder) {
  const std::vector<int64_t> table = {plan.model.vocab, plan.model.hidden};
  const std::pair<const char*, std::vector<int64_t>> needed[] = {
      {kEmbedding, table}, {kHead, table}, {kFinalNorm, {plan.model.hidden}}};
  for (const auto& [name, shape] : needed) {
    const auto found = plan.trunk.find(plan.tensor_prefix + name);
    if (found == plan.trunk.end()) {
      return Failure(Code::kCorrupt, folder, ": the checkpoint has no tensor ",
                     plan.tensor_prefix + name);
    }
    WASTE_TRY(CheckShape(*found->second.source, shape));
  }
  return Status();
}

}  // namespace

int64_t ConversionPlan::tensor_count() const {
  int64_t count = static_cast<int64_t>(trunk.size());
  for (const auto& [layer, sources] : experts)
    count += static_cast<int64_t>(sources.size()) * kExpertKinds;
  return count;
}

Result<ConversionPlan> PlanConversion(const std::string& folder, const Checkpoint& checkpoint,
                                      const ConvertOptions& options) {
  WASTE_TRY(CheckOptions(options));
  WASTE_ASSIGN(HfConfig config, ReadHfConfig(folder));
  ConversionPlan plan;
  plan.arch = std::move(config.arch);
  plan.config = std::move(config.config);
  if (checkpoint.tensors().contains(std::string(kTextModelPrefix) + kEmbedding))
    plan.tensor_prefix = kTextModelPrefix;
  const bool packed = options.index_bits == 6;
  plan.codec = {packed ? IndexKind::kPacked6 : IndexKind::kByte, options.stages, packed ? 64 : 256};

  FoundExperts found;
  WASTE_TRY(SortTensors(checkpoint, options, plan, found));
  Result<ModelConfig> model = ParseModelConfig(DescribeModel(plan), /*has_chat=*/false);
  if (!model.ok()) {
    return Failure(model.status().code(), JoinPath(folder, "config.json"),
                   ", as it would stand in ", model.status().message());
  }
  plan.model = *std::move(model);
  WASTE_TRY(CheckEnds(plan, folder));
  WASTE_TRY(TakeExperts(std::move(found), plan));
  return plan;
}

}  // namespace waste
