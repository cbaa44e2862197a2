// SPDX-License-Identifier: Apache-2.0
//
// config.json of a checkpoint to the config of a manifest: the text model's part word for word, the
// aliases that readers look for where the release has another key, and "_outer", the rest of the
// file. What the numbers mean is model/config.h's. Pure functions but for the one read.

#ifndef WASTE_CORE_CONVERT_HF_CONFIG_H_
#define WASTE_CORE_CONVERT_HF_CONFIG_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace waste {

struct HfConfig {
  std::string arch;  // "kimi-k3", "kimi-linear", or the release's own name
  nlohmann::ordered_json config;
};

// Errors: kFormat, naming `path` (not JSON, no object, no name of an architecture).
Result<HfConfig> ParseHfConfig(std::string_view text, const std::string& path);

// config.json of `folder`. Errors: those above, and kIo.
Result<HfConfig> ReadHfConfig(const std::string& folder);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_HF_CONFIG_H_
