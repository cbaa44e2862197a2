// SPDX-License-Identifier: Apache-2.0

#include "base/check.h"

#include <cstdlib>
#include <string>

namespace waste {

void FailCheck(const char* condition, const char* file, int line) {
#ifdef NDEBUG
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + condition);
#else
  (void)condition, (void)file, (void)line;  // the debugger shows them
  std::abort();
#endif
}

}  // namespace waste
