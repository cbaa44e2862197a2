// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a safetensors file. Every tensor of an accepted header lies in the file; readable
// ones are read to their last element.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "convert/safetensors.h"

namespace waste {
namespace {

class BytesFile : public File {
 public:
  BytesFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    WASTE_CHECK(offset >= 0 && static_cast<size_t>(offset) <= size_ &&
                out.size() <= size_ - static_cast<size_t>(offset));
    if (!out.empty()) std::memcpy(out.data(), data_ + offset, out.size());
    return Status();
  }
  int64_t size() const override { return static_cast<int64_t>(size_); }
  const std::string& path() const override { return path_; }

 private:
  const uint8_t* data_;
  size_t size_;
  std::string path_ = "model.safetensors";
};

}  // namespace
}  // namespace waste

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  const BytesFile file(data, size);
  const auto tensors = ReadSafetensorsHeader(file);
  if (!tensors.ok()) return 0;
  for (const SourceTensor& tensor : *tensors) {
    WASTE_CHECK(tensor.elements >= 1 && tensor.elements <= static_cast<int64_t>(size));
    if (!CheckReadable(tensor).ok()) continue;
    std::vector<float> values(static_cast<size_t>(tensor.elements));
    WASTE_CHECK(ReadElements(tensor, 0, values).ok());
  }
  return 0;
}
