// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as tokenizer.json. What is accepted makes a tokenizer.

#include <cstdint>

#include "base/check.h"
#include "convert/tokenizer_json.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  const auto json = ParseTokenizerJson({reinterpret_cast<const char*>(data), size}, "t.json");
  if (json.ok()) WASTE_CHECK(Tokenizer::Create(json->rank_file, {}, "t.json").ok());
  return 0;
}
