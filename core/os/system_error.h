// SPDX-License-Identifier: Apache-2.0
//
// The system's reasons as text, for messages: what was tried, on which path, and what the system
// said, in one form everywhere. The caller passes the number it saw (errno,
// on Windows GetLastError), since anything done in
// between may change it. Any thread: strerror's shared buffer is not used.

#ifndef WASTE_CORE_OS_SYSTEM_ERROR_H_
#define WASTE_CORE_OS_SYSTEM_ERROR_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace waste {

// What the number `error` means, in the system's words.
std::string SystemErrorText(int error);

// kIo: "cannot WHAT PATH: REASON".
Status SystemFailure(std::string_view what, std::string_view path, int error);

}  // namespace waste

#endif  // WASTE_CORE_OS_SYSTEM_ERROR_H_
