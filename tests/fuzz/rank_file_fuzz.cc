// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a rank file, as they are and behind the 256 single bytes that every good one has:
// refused with a message, or a tokenizer that encodes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/small_tokenizer.h"

namespace {

void CheckFile(const std::string& file) {
  const auto tokenizer = waste::Tokenizer::Create(waste::BytesOf(file), {}, "fuzzed");
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().empty()) std::abort();
    return;
  }
  std::vector<int32_t> ids;
  (*tokenizer)->Encode(file, ids);
  std::string joined;
  for (const int32_t id : ids) joined += (*tokenizer)->Bytes(id);
  if (joined != file) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string single_bytes = waste::RankFile({});
  const std::string file(reinterpret_cast<const char*>(data), size);
  CheckFile(file);
  CheckFile(single_bytes + file);
  return 0;
}
