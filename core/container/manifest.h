// SPDX-License-Identifier: Apache-2.0
//
// manifest.json of a container v0: what the model is (its config, verbatim), how experts are
// quantised, which bank file each layer has, and where each trunk tensor lies (docs/format.md,
// "Manifest"). Parsed from hostile bytes: every number is bounded and every range is checked
// against itself here, and against file sizes when the container is opened. Immutable; any thread.

#ifndef WASTE_CORE_CONTAINER_MANIFEST_H_
#define WASTE_CORE_CONTAINER_MANIFEST_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "quant/expert_format.h"
#include "quant/trunk_format.h"

namespace waste {

struct TrunkEntry {
  std::string name;  // with the tensor prefix
  TrunkFormat format = TrunkFormat::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0;         // absolute in trunk.bin
  int64_t scale_offset = -1;  // absolute; -1 for F32 and F16
  int64_t bytes = 0;          // payload and scales

  int64_t columns() const { return shape.back(); }
  int64_t rows() const;  // product of the other dimensions
};

struct LayerEntry {
  std::string file;  // a plain name inside the container
  int64_t experts = 0;
  int64_t bytes = 0;  // of the file
  int64_t codebook_base = 0;

  int64_t record_bytes() const { return bytes / experts; }
};

struct Manifest {
  std::string arch;
  std::string tensor_prefix;
  nlohmann::ordered_json config;  // the text model's config; "_outer" holds the rest
  bool has_experts = false;
  ExpertCodec codec;
  std::map<int32_t, LayerEntry> layers;  // by layer
  std::vector<TrunkEntry> trunk;

  const TrunkEntry* FindTrunk(std::string_view name) const;  // null if absent
};

// Errors name `path`: kFormat (not JSON, or a key has the wrong type), kVersion (format_version is
// above 0), kUnsupported (an unknown trunk format or expert codec), kCorrupt (numbers that
// contradict each other, a bank name that is no plain name, duplicate tensors).
Result<Manifest> ParseManifest(std::string_view text, const std::string& path);

// The JSON text as the format's writers print it (indent 1, ASCII, keys in order).
std::string PrintManifest(const Manifest& manifest);

// Whether `name` can only be a file directly inside a container, on every system: not empty, no
// separator, no drive, no control character, not "." or "..", at most 255 bytes.
bool IsPlainFileName(std::string_view name);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_MANIFEST_H_
