// SPDX-License-Identifier: Apache-2.0
//
// The folders that a container's banks lie in, as its drives.json says (docs/format.md), and how
// fast each of them is read. For containers that the library has opened: what is wrong with a
// drives.json was said then.

#ifndef WASTE_EXAMPLES_CLI_DRIVES_H_
#define WASTE_EXAMPLES_CLI_DRIVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "drive_limit.h"

namespace waste_cli {

// The container's own folder first; each once, those that are not there included.
std::vector<std::string> BankFolders(const std::string& container);

struct Drive {
  std::string folder;
  uint64_t device = 0;  // equal for folders on one
  DriveLimit limit;
};

struct DriveLimits {
  std::vector<Drive> drives;    // one a folder
  bool share_a_device = false;  // two of them, so that copies there add no speed
  // Of a token, which reads one bank after another: a bank with copies at the speed of all drives
  // that have it, another at that of its own.
  DriveLimit all;
};

// MeasureDrive of each.
DriveLimits MeasureDrives(const std::string& container, int64_t record_bytes, int32_t readers);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_DRIVES_H_
