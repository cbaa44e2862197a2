// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as specials.json. What is accepted is sorted, and printing and parsing it again gives
// the same text.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "container/specials.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  const auto specials = ParseSpecials({reinterpret_cast<const char*>(data), size}, "s");
  if (!specials.ok()) {
    WASTE_CHECK(!specials.status().message().empty());
    return 0;
  }
  for (size_t i = 1; i < specials->size(); ++i)
    WASTE_CHECK((*specials)[i - 1].id < (*specials)[i].id);
  const std::string printed = PrintSpecials(*specials);
  const auto again = ParseSpecials(printed, "s");
  WASTE_CHECK(again.ok() && PrintSpecials(*again) == printed);
  return 0;
}
