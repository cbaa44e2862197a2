// SPDX-License-Identifier: Apache-2.0
//
// Owners of what the library returns, and Try, which turns an error of the library into a Failure.
// The library allows any order of freeing, so owners are plain members and locals.

#ifndef WASTE_EXAMPLES_CLI_HANDLE_H_
#define WASTE_EXAMPLES_CLI_HANDLE_H_

#include <memory>

#include "failure.h"
#include "waste/waste.h"

namespace waste_cli {

struct Free {
  void operator()(void* object) const { waste_free(object); }
};
template <typename T>
using Handle = std::unique_ptr<T, Free>;

using Model = Handle<waste_model>;
using Session = Handle<waste_session>;
using Generation = Handle<waste_generation>;
using Job = Handle<waste_job>;

// What `call(waste_error*)` returns, a status or a count, or the Failure it reports.
template <typename Call>
auto Try(const Call& call) {
  waste_error error = {};
  error.struct_size = sizeof error;
  const auto result = call(&error);
  if (result < 0) throw LibraryFailure(error, static_cast<waste_status>(result));
  return result;
}

// The object that `call(T** out, waste_error*)` makes.
template <typename T, typename Call>
Handle<T> Make(const Call& call) {
  T* object = nullptr;
  Try([&](waste_error* error) { return call(&object, error); });
  return Handle<T>(object);
}

// A struct of the library, empty, of the size that this program knows.
template <typename T>
T Sized() {
  T value = {};
  value.struct_size = sizeof value;
  return value;
}

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_HANDLE_H_
