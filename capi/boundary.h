// SPDX-License-Identifier: Apache-2.0
//
// What every entry does on its way in and out: arguments are checked, structs are read and written
// by their struct_size, a Status becomes a waste_error, and no exception leaves.

#ifndef WASTE_CAPI_BOUNDARY_H_
#define WASTE_CAPI_BOUNDARY_H_

#include <waste/waste.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace waste {

// Writes a failure to the caller's struct, if there is one, and returns its code.
waste_status Report(waste_error* error, const Status& status) noexcept;

namespace internal {
inline int64_t ValueOf(const Status&) { return 0; }
inline int64_t ValueOf(const Result<int64_t>& result) { return *result; }
inline const Status& StatusOf(const Status& status) { return status; }
inline const Status& StatusOf(const Result<int64_t>& result) { return result.status(); }
}  // namespace internal

// Runs `body`, which returns a Status or a Result<int64_t>, and gives its value or a waste_status.
template <typename Body>
int64_t Guard(waste_error* error, Body&& body) noexcept {
  try {
    const auto result = body();
    if (result.ok()) return internal::ValueOf(result);
    return Report(error, internal::StatusOf(result));
  } catch (const std::bad_alloc&) {
    return Report(error, Status(Code::kNoMemory, "the system gave no memory"));
  } catch (const std::exception& exception) {
    return Report(error, Status(Code::kInternal, exception.what()));
  } catch (...) {
    return Report(error, Status(Code::kInternal, "an unknown exception"));
  }
}

// For entries that return a waste_status.
template <typename Body>
waste_status GuardStatus(waste_error* error, Body&& body) noexcept {
  return static_cast<waste_status>(Guard(error, static_cast<Body&&>(body)));
}

// The bytes of a text or a path. Errors: kArgument (NULL with a size, a size below -1).
Result<std::string_view> Bytes(const char* data, int64_t size, const char* name);
// The same, valid UTF-8. Errors: kArgument with the offset of the first bad byte.
Result<std::string_view> Text(const char* text, int64_t size, const char* name);
// A path: not empty, no NUL inside.
Result<std::string> Path(const char* path, int64_t size, const char* name);

// `count` elements at `data`. Errors: kArgument (NULL with a count, a negative count).
template <typename T>
Result<std::span<T>> Array(T* data, int64_t count, const char* name) {
  if (count < 0 || (data == nullptr && count > 0))
    return Failure(Code::kArgument, name, " is ", data == nullptr ? "NULL" : "an array", " of ",
                   count, " elements");
  return std::span<T>(data, static_cast<size_t>(count));
}

// Copies what fits into the caller's buffer, and a NUL behind it where there is room.
int64_t CopyText(std::string_view text, std::span<char> buffer);

// A struct of the caller's, which may be older (shorter: the rest is zero) or newer (longer: what
// this library does not know must be zero). NULL gives all defaults. Errors: kArgument.
template <typename T>
Result<T> ReadStruct(const T* given, const char* name) {
  T known{};
  known.struct_size = sizeof(T);
  if (given == nullptr) return known;
  const size_t size = given->struct_size;
  if (size < sizeof(uint32_t) || size > (size_t{1} << 16))
    return Failure(Code::kArgument, name, "->struct_size is ", size, "; set it to sizeof *", name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      return Failure(Code::kArgument, name, " sets a field that this library does not have (byte ",
                     i, " of ", size, ")");
  std::memcpy(&known, given, std::min(size, sizeof(T)));
  known.struct_size = sizeof(T);
  return known;
}

// Whether `out` can be written. Errors: kArgument.
template <typename T>
Status CheckStruct(const T* out, const char* name) {
  if (out == nullptr) return Failure(Code::kArgument, name, " is NULL");
  if (out->struct_size < sizeof(uint32_t))
    return Failure(Code::kArgument, name, "->struct_size is ", out->struct_size,
                   "; set it to sizeof *", name);
  return Status();
}

// Writes as much of `value` as the caller's struct has room for; struct_size stays.
template <typename T>
void WriteStruct(T* out, T value) {
  value.struct_size = out->struct_size;
  std::memcpy(out, &value, std::min<size_t>(out->struct_size, sizeof(T)));
}

template <typename T>
Status CheckOut(T** out) {
  if (out == nullptr) return Failure(Code::kArgument, "out is NULL");
  return Status();
}

// 0 or 1 from a field that is a switch. Errors: kArgument.
Result<bool> Switch(int32_t value, const char* name);

}  // namespace waste

#endif  // WASTE_CAPI_BOUNDARY_H_
