// SPDX-License-Identifier: Apache-2.0
//
// What of reading is the same on all systems.

#include "os/file.h"

namespace waste {

Result<std::vector<uint8_t>> ReadWholeFile(const std::string& path, int64_t max_bytes) {
  WASTE_ASSIGN(const auto file, OpenFile(path, IoMode::kBuffered));
  if (file->size() > max_bytes)
    return Failure(Code::kFormat, path, ": has ", file->size(), " bytes, and at most ", max_bytes,
                   " make sense");
  std::vector<uint8_t> bytes(static_cast<size_t>(file->size()));
  WASTE_TRY(file->ReadAt(0, bytes));
  return bytes;
}

}  // namespace waste
