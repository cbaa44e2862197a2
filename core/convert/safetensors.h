// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a checkpoint: model.safetensors, or the shards that model.safetensors.index.json
// names, or else every *.safetensors of the folder. Headers are hostile: lengths, shapes and
// offsets are checked against each other and against file sizes before a tensor can be asked for.
// Tensors are read by range, as f32; no file is mapped or loaded whole, none is written. Immutable
// once open; any thread may read.

#ifndef WASTE_CORE_CONVERT_SAFETENSORS_H_
#define WASTE_CORE_CONVERT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "os/file.h"

namespace waste {

inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;  // bytes, as the format's own library

struct SourceTensor {
  std::string name;
  std::string type;            // as the file says it, "BF16"
  std::vector<int64_t> shape;  // every size >= 1; empty for a single number
  int64_t elements = 0;
  int64_t offset = 0;  // absolute in its file
  const File* file = nullptr;
};

// Parses the header of one file into its tensors. Gaps between tensors are allowed, overlaps are
// not. Errors name the file and tensor: kFormat (no safetensors), kCorrupt (numbers that contradict
// each other or the file's size), kUnsupported (an element type nobody has heard of), kIo.
Result<std::vector<SourceTensor>> ReadSafetensorsHeader(const File& file);

class Checkpoint {
 public:
  // Errors: those of ReadSafetensorsHeader; kIo for a missing shard, named; kFormat if the folder
  // has no safetensors or the index is no index; kCorrupt for a tensor in two shards, or one that
  // is not where the index says.
  static Result<Checkpoint> Open(const std::string& folder);

  const std::map<std::string, SourceTensor>& tensors() const { return tensors_; }

 private:
  Checkpoint() = default;
  Status AddFile(const std::string& path);

  std::vector<std::unique_ptr<File>> files_;
  std::map<std::string, SourceTensor> tensors_;
};

// kUnsupported, naming the tensor, unless its elements are F32, F16 or BF16.
Status CheckReadable(const SourceTensor& tensor);

// Fills `out` with the elements from `begin` on, row-major. The range lies inside the tensor, and
// the tensor is readable. Errors: kIo, kCorrupt.
Status ReadElements(const SourceTensor& tensor, int64_t begin, std::span<float> out);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_SAFETENSORS_H_
