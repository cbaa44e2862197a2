// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as drives.json. What is accepted is a short list of paths that a system call takes
// whole, and stays what it is when it is written and parsed again.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "container/drive_folders.h"
#include "container/json_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace waste;
  const auto folders = ParseDriveFolders({reinterpret_cast<const char*>(data), size}, "d");
  if (!folders.ok()) {
    WASTE_CHECK(!folders.status().message().empty());
    return 0;
  }
  WASTE_CHECK(std::ssize(*folders) <= kMaxDriveFolders);
  for (const std::string& folder : *folders)
    WASTE_CHECK(!folder.empty() && folder.find('\0') == std::string::npos);
  const std::string printed = PrintJsonText({{"folders", *folders}});
  const auto again = ParseDriveFolders(printed, "d");
  WASTE_CHECK(again.ok() && *again == *folders);
  return 0;
}
