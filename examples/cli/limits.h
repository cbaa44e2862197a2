// SPDX-License-Identifier: Apache-2.0
//
// What the machine could do at best, measured now: the speed of reading memory, of multiplying and
// adding, and of reading expert records from the drive. A figure of the engine means something
// beside these only. Each takes about half a second. One thread calls; they start their own.

#ifndef WASTE_EXAMPLES_CLI_LIMITS_H_
#define WASTE_EXAMPLES_CLI_LIMITS_H_

#include <cstdint>
#include <string>

namespace waste_cli {

// Bytes a second that `threads` threads read from memory beyond every cache.
double MemoryLimit(int32_t threads);

// f32 operations a second (two a fused multiply-add) of `threads` threads, all operands in
// registers, with the widest vectors of the machine up to those of `isa`.
double FmaLimit(int32_t threads, int32_t isa);

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

#endif  // WASTE_EXAMPLES_CLI_LIMITS_H_
