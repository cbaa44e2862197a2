// SPDX-License-Identifier: Apache-2.0
//
// Writes a container v0 (docs/format.md) byte-exactly into a folder that appears under its name
// only when Finish succeeds: everything goes to NAME.tmp, is flushed, and the folder is renamed,
// manifest last. Destroyed without Finish, it removes what it wrote. Knows bytes and layouts; what
// is quantised how is the caller's. One thread.

#ifndef WASTE_CORE_CONTAINER_WRITER_H_
#define WASTE_CORE_CONTAINER_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "container/container.h"
#include "container/manifest.h"
#include "os/file.h"

namespace waste {

// The encoded parts of one expert, in record order.
struct EncodedExpert {
  std::vector<uint8_t> gate, up, down;                       // indices, ExpertIndexBytes each
  std::vector<uint8_t> gate_scales, up_scales, down_scales;  // f16
};

class ContainerWriter {
 public:
  // Errors: kArgument if `folder` exists, or NAME.tmp (of a writer that runs or was killed); kIo.
  static Result<std::unique_ptr<ContainerWriter>> Create(const std::string& folder);
  ~ContainerWriter();

  // Trunk tensors must come in ascending order of name (bytewise; else kArgument). `payload` and
  // `scales` are what EncodeTrunkRow made of the rows, each row after the other. Errors also:
  // kUnsupported (a shape that no container holds), kIo.
  Status AddTrunk(const std::string& name, TrunkFormat format, std::vector<int64_t> shape,
                  std::span<const uint8_t> payload, std::span<const uint8_t> scales);

  // Codebooks are numbered in order of arrival, and all have as many entries; values are rounded to
  // f16. Returns the number. Errors: kUnsupported (a value does not fit f16), kIo.
  Result<int64_t> AddCodebook(std::span<const float> entries);

  // A layer's bank: BeginBank, then AddExpert for 0, 1, ... in order, then EndBank. Its codebooks
  // must have been added; all banks have one codec, all experts of a bank one shape. Errors:
  // kArgument (the layer has a bank already, codebooks that are not there), kUnsupported, kIo.
  Status BeginBank(int32_t layer, int64_t codebook_base, const ExpertCodec& codec);
  Status AddExpert(const EncodedExpert& expert);
  Status EndBank();

  // A side file (tokenizer.model, specials.json, chat.json, ...), verbatim.
  Status AddFile(const std::string& name, std::span<const uint8_t> bytes);
  Status AddSpecials(const std::vector<SpecialToken>& specials);

  // Writes manifest.json and makes the folder visible.
  Status Finish(const std::string& arch, const std::string& tensor_prefix,
                const nlohmann::ordered_json& config);

 private:
  struct Work;
  explicit ContainerWriter(std::unique_ptr<Work> work);
  Status AddManifest();
  std::unique_ptr<Work> work_;
};

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_WRITER_H_
