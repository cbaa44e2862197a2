// SPDX-License-Identifier: Apache-2.0

#include "os/system_error.h"

namespace waste {

Status SystemFailure(std::string_view what, std::string_view path, int error) {
  return Failure(Code::kIo, "cannot ", what, " ", path, ": ", SystemErrorText(error));
}

}  // namespace waste
