// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as manifest.json. What is accepted must keep its promises: printing and parsing it
// again gives the same text.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "container/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  const auto manifest = ParseManifest({reinterpret_cast<const char*>(data), size}, "m");
  if (!manifest.ok()) {
    WASTE_CHECK(!manifest.status().message().empty());
    return 0;
  }
  for (const TrunkEntry& entry : manifest->trunk) {
    WASTE_CHECK(entry.offset >= 0 && entry.bytes > 0 && entry.offset + entry.bytes > 0);
    WASTE_CHECK(entry.rows() * TrunkRowBytes(entry.format, entry.columns()) <= entry.bytes);
  }
  for (const auto& [number, layer] : manifest->layers)
    WASTE_CHECK(layer.experts > 0 && layer.record_bytes() > 0 && IsPlainFileName(layer.file));
  const std::string printed = PrintManifest(*manifest);
  const auto again = ParseManifest(printed, "m");
  WASTE_CHECK(again.ok() && PrintManifest(*again) == printed);
  return 0;
}
