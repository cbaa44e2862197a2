// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as usage.waste; what is accepted is printed as it was, but for the field nobody reads.

#include <cstdint>

#include "base/check.h"
#include "stream/usage_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  const auto usage = ParseUsageLog({data, size}, "usage.waste");
  if (!usage.ok()) return 0;
  const std::vector<uint8_t> printed = PrintUsageLog(*usage);
  WASTE_CHECK(printed.size() == size);
  const auto again = ParseUsageLog(printed, "usage.waste");
  WASTE_CHECK(again.ok() && *again == *usage);
  return 0;
}
