// SPDX-License-Identifier: Apache-2.0

#include "os/system_error.h"

#include <string.h>

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

Status SystemFailure(std::string_view what, std::string_view path, int error) {
  return Failure(Code::kIo, "cannot ", what, " ", path, ": ", SystemErrorText(error));
}

}  // namespace waste
