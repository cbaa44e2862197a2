// SPDX-License-Identifier: Apache-2.0

#include "os/whole_read.h"

#include <algorithm>

#include "base/check.h"
#include "os/system_error.h"

namespace waste {
namespace {

constexpr int64_t kReadMax = int64_t{1} << 30;  // one call; systems refuse more than 2 GiB

}  // namespace

int64_t ReadAvailable(int64_t offset, std::span<uint8_t> out, bool direct, const ReadSome& read) {
  const int64_t size = static_cast<int64_t>(out.size());
  int64_t done = 0;
  while (done < size) {
    const int64_t wanted = std::min(size - done, kReadMax);
    const int64_t got = read(offset + done, out.subspan(done, wanted));
    if (got == kReadInterrupted) continue;
    if (got < 0) return got;
    if (got == 0) break;
    // A direct read goes on at a block, reading the rest of a short one again.
    const int64_t used = direct && done + got < size ? got / kDirectBlock * kDirectBlock : got;
    if (used == 0) break;
    done += used;
  }
  return done;
}

Status ReadWhole(const std::string& path, int64_t size, bool direct, int64_t offset,
                 std::span<uint8_t> out, const ReadSome& read) {
  const int64_t wanted = static_cast<int64_t>(out.size());
  if (offset < 0 || offset > size || wanted > size - offset)
    return Failure(Code::kCorrupt, path, ": ", wanted, " bytes at ", offset, " are not all in its ",
                   size, " bytes");
  WASTE_CHECK(!direct || (offset % kDirectBlock == 0 && wanted % kDirectBlock == 0 &&
                          reinterpret_cast<uintptr_t>(out.data()) % kDirectBlock == 0));
  const int64_t got = ReadAvailable(offset, out, direct, read);
  if (got < 0)
    return Failure(Code::kIo, path, ": cannot read ", wanted, " bytes at ", offset, ": ",
                   SystemErrorText(static_cast<int>(-got)));
  if (got < wanted)
    return Failure(Code::kCorrupt, path, ": had ", size, " bytes when opened and now ends at ",
                   offset + got, ", inside ", wanted, " bytes at ", offset);
  return Status();
}

}  // namespace waste
