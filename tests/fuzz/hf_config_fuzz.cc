// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as config.json. What is accepted is an object that prints, and the model's own parser
// takes or refuses it without a crash.

#include <cstdint>

#include "base/check.h"
#include "container/json_text.h"
#include "convert/hf_config.h"
#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  auto config = ParseHfConfig({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!config.ok()) return 0;
  WASTE_CHECK(config->config.is_object() && !PrintJsonText(config->config).empty());
  Manifest manifest;
  manifest.arch = config->arch;
  manifest.config = config->config;
  static_cast<void>(ParseModelConfig(manifest, /*has_chat=*/false).ok());
  return 0;
}
