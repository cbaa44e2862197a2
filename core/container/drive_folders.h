// SPDX-License-Identifier: Apache-2.0
//
// drives.json: further folders that hold banks of a container, so that its experts may lie on
// several drives, whole copies or a part each (docs/format.md, "Several drives"). This file knows
// which folders there are, not what is in them. Parsing is a pure function; any thread.

#ifndef WASTE_CORE_CONTAINER_DRIVE_FOLDERS_H_
#define WASTE_CORE_CONTAINER_DRIVE_FOLDERS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace waste {

inline constexpr int64_t kMaxDriveFolders = 16;  // in drives.json; the container's own comes on top

// The folders as they are written. Errors name `path`: kFormat (not {"folders": [text, ...]}),
// kCorrupt (too many of them, or one that can be no folder).
Result<std::vector<std::string>> ParseDriveFolders(std::string_view text, const std::string& path);

// Every folder that may hold banks of `container`: itself first, then those of its drives.json, if
// it has one, relative ones from the container on. A folder named twice, by whatever name, counts
// once; one that is not there is kept. Errors: those of ParseDriveFolders, kIo.
Result<std::vector<std::string>> ReadDriveFolders(const std::string& container);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_DRIVE_FOLDERS_H_
