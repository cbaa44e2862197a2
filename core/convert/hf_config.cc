// SPDX-License-Identifier: Apache-2.0

#include "convert/hf_config.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "container/json_text.h"
#include "os/file.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxConfigBytes = int64_t{1} << 20;

struct Alias {
  const char* name;
  const char* release_name;
};
constexpr Alias kAliases[] = {{"num_experts", "n_routed_experts"},
                              {"num_experts_per_token", "num_experts_per_tok"},
                              {"num_shared_experts", "n_shared_experts"}};

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// The name that the release gives its architecture; empty if it gives none.
std::string ReleaseName(const Json& file) {
  const Json* names = JsonMember(file, "architectures");
  if (names != nullptr && names->is_array() && !names->empty() && (*names)[0].is_string())
    return (*names)[0].get<std::string>();
  const Json* type = JsonMember(file, "model_type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : std::string();
}

std::string ArchName(const std::string& release_name) {
  if (StartsWith(release_name, "KimiK3") || release_name == "kimi_k3") return "kimi-k3";
  if (StartsWith(release_name, "KimiLinear") || release_name == "kimi_linear") return "kimi-linear";
  return release_name;
}

void AddAliases(Json& config) {
  for (const Alias& alias : kAliases) {
    const Json* value = JsonMember(config, alias.release_name);
    if (value != nullptr && !config.contains(alias.name)) config[alias.name] = Json(*value);
  }
  const Json* normalise = JsonMember(config, "norm_topk_prob");
  if (normalise != nullptr && *normalise == true && !config.contains("moe_renormalize"))
    config["moe_renormalize"] = true;
}

}  // namespace

Result<HfConfig> ParseHfConfig(std::string_view text, const std::string& path) {
  WASTE_ASSIGN(Json file, ParseJsonText(text, path));
  if (!file.is_object()) return Failure(Code::kFormat, path, ": not a JSON object");
  HfConfig result;
  result.arch = ArchName(ReleaseName(file));
  if (result.arch.empty())
    return Failure(Code::kFormat, path, ": names no architecture (architectures, model_type)");

  const Json* text_config = JsonMember(file, "text_config");
  if (text_config != nullptr && !text_config->is_object())
    return Failure(Code::kFormat, path, ": text_config is no object");
  result.config = text_config != nullptr ? *text_config : file;
  file.erase("text_config");
  AddAliases(result.config);
  result.config["_outer"] = std::move(file);
  return result;
}

Result<HfConfig> ReadHfConfig(const std::string& folder) {
  const std::string path = JoinPath(folder, "config.json");
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxConfigBytes));
  return ParseHfConfig({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace waste
