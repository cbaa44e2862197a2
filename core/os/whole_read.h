// SPDX-License-Identifier: Apache-2.0
//
// Reads a whole range of a file by system calls that may give less than was asked for, or nothing
// because a signal came. One loop for every system, and for the FakeFile of the tests. It does not
// try again what the system refused: whoever knows what the bytes are decides that. Any thread.

#ifndef WASTE_CORE_OS_WHOLE_READ_H_
#define WASTE_CORE_OS_WHOLE_READ_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"

namespace waste {

inline constexpr int64_t kDirectBlock = 4096;  // of direct reads: offset, size and address

// One call: how many bytes it gave, 0 at the end of the file, kReadInterrupted, or a system error
// as a negative number.
using ReadSome = std::function<int64_t(int64_t offset, std::span<uint8_t> out)>;
inline constexpr int64_t kReadInterrupted = INT64_MIN;

// As many bytes of the range as there are, or a negative system error. A direct read that gave less
// than its range goes on at a block.
int64_t ReadAvailable(int64_t offset, std::span<uint8_t> out, bool direct, const ReadSome& read);

// The whole range of the file `path`, which had `size` bytes when it was opened. Errors: kIo,
// kCorrupt, as File::ReadAt.
Status ReadWhole(const std::string& path, int64_t size, bool direct, int64_t offset,
                 std::span<uint8_t> out, const ReadSome& read);

}  // namespace waste

#endif  // WASTE_CORE_OS_WHOLE_READ_H_
