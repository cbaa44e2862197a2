// SPDX-License-Identifier: Apache-2.0
//
// WASTE_CHECK: for our own bugs only. Input (files, prompts, options) never reaches one. A debug
// build aborts on the spot, where a debugger or a sanitizer shows the stack; a release build throws
// InternalError, which the C boundary turns into WASTE_ERR_INTERNAL, because a library must not
// kill its host. Any thread.

#ifndef WASTE_CORE_BASE_CHECK_H_
#define WASTE_CORE_BASE_CHECK_H_

#include <stdexcept>

namespace waste {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Aborts in a debug build, throws InternalError otherwise.
[[noreturn]] void FailCheck(const char* condition, const char* file, int line);

#define WASTE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::waste::FailCheck(#condition, __FILE__, __LINE__))

}  // namespace waste

#endif  // WASTE_CORE_BASE_CHECK_H_
