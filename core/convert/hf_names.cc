// SPDX-License-Identifier: Apache-2.0

#include "convert/hf_names.h"

#include <charconv>

namespace waste {
namespace {

constexpr std::string_view kMoe = ".block_sparse_moe.";
constexpr std::string_view kDeepSeekMoe = ".mlp.";
constexpr std::string_view kDeepSeekParts[] = {"gate.", "experts.", "shared_experts."};
constexpr std::string_view kExperts = ".experts.";

struct Projection {
  std::string_view deep_seek;
  std::string_view kimi;
};
// In the order of a record: gate, up, down.
constexpr Projection kProjections[kExpertKinds] = {
    {".gate_proj.", ".w1."}, {".up_proj.", ".w3."}, {".down_proj.", ".w2."}};

bool Take(std::string_view& text, std::string_view start) {
  if (text.substr(0, start.size()) != start) return false;
  text.remove_prefix(start.size());
  return true;
}

bool TakeNumber(std::string_view& text, int32_t& number) {
  if (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') return false;
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

void ReplaceFirst(std::string& text, size_t from, std::string_view old, std::string_view now) {
  const size_t at = text.find(old, from);
  if (at != std::string::npos) text.replace(at, old.size(), now);
}

}  // namespace

std::string ContainerName(std::string_view source_name) {
  std::string name(source_name);
  const size_t mlp = name.find(kDeepSeekMoe);
  if (mlp != std::string::npos) {
    const std::string_view rest = std::string_view(name).substr(mlp + kDeepSeekMoe.size());
    for (const std::string_view part : kDeepSeekParts) {
      if (rest.substr(0, part.size()) != part) continue;
      name.replace(mlp, kDeepSeekMoe.size(), kMoe);
      break;
    }
  }
  const size_t experts = name.find(kExperts);
  if (experts != std::string::npos) {
    for (const Projection& projection : kProjections)
      ReplaceFirst(name, experts, projection.deep_seek, projection.kimi);
  }
  return name;
}

bool IsVisionName(std::string_view name) {
  return Take(name, "vision_tower.") || Take(name, "mm_projector.");
}

bool IsExpertName(std::string_view name) { return name.find(kExperts) != std::string_view::npos; }

std::optional<ExpertName> ParseExpertName(std::string_view container_name,
                                          std::string_view prefix) {
  std::string_view rest = container_name;
  ExpertName name = {};
  if (!Take(rest, prefix) || !Take(rest, "model.layers.") || !TakeNumber(rest, name.layer) ||
      !Take(rest, ".block_sparse_moe.experts.") || !TakeNumber(rest, name.expert)) {
    return std::nullopt;
  }
  for (const Projection& projection : kProjections) {
    if (Take(rest, projection.kimi)) {
      if (rest != "weight") return std::nullopt;
      return name;
    }
    ++name.kind;
  }
  return std::nullopt;
}

}  // namespace waste
