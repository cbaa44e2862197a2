// SPDX-License-Identifier: Apache-2.0
//
// The numbers are those of errno.

#include <string.h>

#include "os/system_error.h"

namespace waste {
namespace {

// strerror_r is one of two functions of that name; overloads tell which.
[[maybe_unused]] std::string TextOf(int failed, const char* buffer, int error) {  // POSIX
  return failed == 0 ? buffer : "error " + std::to_string(error);
}
[[maybe_unused]] std::string TextOf(const char* text, const char*, int) { return text; }  // GNU

}  // namespace

std::string SystemErrorText(int error) {
  char buffer[256];
  return TextOf(strerror_r(error, buffer, sizeof buffer), buffer, error);
}

}  // namespace waste
