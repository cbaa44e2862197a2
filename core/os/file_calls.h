// SPDX-License-Identifier: Apache-2.0
//
// The system calls under AtomicFile, each once a system (file_write_posix.cc,
// file_write_windows.cc). They return 0 or the system's error as SystemErrorText knows it. For
// core/os alone. Paths are UTF-8. Any thread.

#ifndef WASTE_CORE_OS_FILE_CALLS_H_
#define WASTE_CORE_OS_FILE_CALLS_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace waste {

// Opens a file for writing that must not be there yet.
int CreateNewFile(const std::string& path, int& descriptor);
int WriteFully(int descriptor, int64_t offset, std::span<const uint8_t> bytes);
// Everything written is on the medium.
int FlushFile(int descriptor);
int CloseFile(int descriptor);
int RenameOver(const std::string& from, const std::string& to);
int RemoveFile(const std::string& path);  // 0 too if there is none
// The names in the folder that `path` stands in are on the medium. Errors: kIo.
Status FlushParent(std::string path);

}  // namespace waste

#endif  // WASTE_CORE_OS_FILE_CALLS_H_
