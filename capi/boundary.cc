// SPDX-License-Identifier: Apache-2.0

#include "boundary.h"

#include "base/utf8.h"

namespace waste {

waste_status Report(waste_error* error, const Status& status) noexcept {
  const auto code = static_cast<waste_status>(status.code());
  if (error == nullptr || error->struct_size < sizeof(uint32_t)) return code;
  waste_error full{};
  full.code = code;
  full.needed_bytes = status.needed_bytes();
  const std::string_view message =
      CutUtf8(status.message(), static_cast<int64_t>(sizeof full.message) - 1);
  std::memcpy(full.message, message.data(), message.size());
  WriteStruct(error, full);
  return code;
}

Result<std::string_view> Bytes(const char* data, int64_t size, const char* name) {
  if (size < -1) return Failure(Code::kArgument, name, "_size is ", size);
  if (data == nullptr) {
    if (size > 0) return Failure(Code::kArgument, name, " is NULL and ", name, "_size ", size);
    return std::string_view();
  }
  return std::string_view(data, size < 0 ? std::strlen(data) : static_cast<size_t>(size));
}

Result<std::string_view> Text(const char* text, int64_t size, const char* name) {
  WASTE_ASSIGN(const std::string_view bytes, Bytes(text, size, name));
  if (const int64_t bad = FindInvalidUtf8(bytes); bad >= 0)
    return Failure(Code::kArgument, name, " is not UTF-8 at byte ", bad, " of ", bytes.size());
  return bytes;
}

Result<std::string> Path(const char* path, int64_t size, const char* name) {
  WASTE_ASSIGN(const std::string_view bytes, Bytes(path, size, name));
  if (bytes.empty()) return Failure(Code::kArgument, name, " is empty");
  if (const size_t nul = bytes.find('\0'); nul != std::string_view::npos)
    return Failure(Code::kArgument, name, " has a NUL at byte ", nul);
  return std::string(bytes);
}

int64_t CopyText(std::string_view text, std::span<char> buffer) {
  const size_t fits = std::min(text.size(), buffer.size());
  if (fits > 0) std::memcpy(buffer.data(), text.data(), fits);
  if (fits < buffer.size()) buffer[fits] = '\0';
  return static_cast<int64_t>(text.size());
}

Result<bool> Switch(int32_t value, const char* name) {
  if (value != 0 && value != 1)
    return Failure(Code::kArgument, name, " is ", value, "; it is 0 or 1");
  return value == 1;
}

}  // namespace waste
