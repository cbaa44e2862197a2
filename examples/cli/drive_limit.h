// SPDX-License-Identifier: Apache-2.0
//
// The speed of reading expert records from the drive, at best, measured now in about half a second.
// One thread calls; it starts its own.

#ifndef WASTE_EXAMPLES_CLI_DRIVE_LIMIT_H_
#define WASTE_EXAMPLES_CLI_DRIVE_LIMIT_H_

#include <cstdint>
#include <string>

namespace waste_cli {

struct DriveLimit {
  double bytes_s = 0;   // 0 if there are no experts to be read
  bool direct = false;  // past the page cache
  std::string refusal;  // of direct reads: why not
};

// As many reads at once as the limit of the drive is measured with.
inline constexpr int32_t kDriveReaders = 4;

// Random expert records of a container, so many at a time, past the page cache where that can be
// had; else each is dropped from it again, so that the drive is measured and not memory.
DriveLimit MeasureDrive(const std::string& container, int64_t record_bytes, int32_t readers);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_DRIVE_LIMIT_H_
