// SPDX-License-Identifier: Apache-2.0
//
// Status and Result: how an operation that can fail says so. The code is what callers branch on;
// the message is what people read: which file and record, the numbers, and what to do. A bug of our
// own is not a Status but a WASTE_CHECK (base/check.h). An ok Status holds no memory. Immutable
// once made, so any thread may read it.

#ifndef WASTE_CORE_BASE_STATUS_H_
#define WASTE_CORE_BASE_STATUS_H_

#include <cstdint>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace waste {

// The values are the C API's (capi/include/waste/waste.h) and are never reused.
enum class Code : int32_t {
  kOk = 0,
  kIo = -1,           // the system refused a read, a write or an open
  kFormat = -2,       // this is not a file we understand
  kCorrupt = -3,      // it is one, and it is damaged
  kUnsupported = -4,  // it is sound, and this build cannot run it
  kArgument = -5,     // the caller asked for something that cannot be
  kRamBudget = -6,    // the budget is below the floor
  kNoMemory = -7,     // the system gave no memory
  kContextFull = -8,  // the text does not fit the context
  kBusy = -9,         // another call on this object is running
  kCancelled = -10,   // somebody asked to stop
  kVersion = -11,     // written by a newer version
  kInternal = -12,    // a bug of ours
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Bytes that would have sufficed; set with kRamBudget only.
  int64_t needed_bytes() const { return needed_bytes_; }
  Status WithNeededBytes(int64_t needed_bytes) && {
    needed_bytes_ = needed_bytes;
    return std::move(*this);
  }

 private:
  Code code_ = Code::kOk;
  int64_t needed_bytes_ = 0;
  std::string message_;
};

// A failure whose message is the parts written one after another: Failure(Code::kIo, "bank ", 37,
// ": ", reason).
template <typename... Parts>
Status Failure(Code code, const Parts&... parts) {
  std::ostringstream message;
  message.imbue(std::locale::classic());  // the host's locale may print 4096 as 4.096
  (message << ... << parts);
  return Status(code, std::move(message).str());
}

// A T, or why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status error) : status_(std::move(error)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status&& status() && { return std::move(status_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// Returns the failure of `expression` from the enclosing function.
#define WASTE_TRY(expression)                                                                  \
  do {                                                                                         \
    if (auto waste_try_status = (expression); !waste_try_status.ok()) return waste_try_status; \
  } while (false)

// Declares `variable` from a Result, or returns its failure:
// WASTE_ASSIGN(const int64_t size, FileSize(path)).
#define WASTE_ASSIGN(variable, expression) \
  WASTE_ASSIGN_AS_(WASTE_NAME_(waste_result_, __LINE__), variable, expression)
#define WASTE_ASSIGN_AS_(result, variable, expression) \
  auto result = (expression);                          \
  if (!result.ok()) return std::move(result).status(); \
  variable = *std::move(result)
#define WASTE_NAME_(prefix, line) WASTE_NAME_JOINED_(prefix, line)
#define WASTE_NAME_JOINED_(prefix, line) prefix##line

}  // namespace waste

#endif  // WASTE_CORE_BASE_STATUS_H_
