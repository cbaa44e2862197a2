// SPDX-License-Identifier: Apache-2.0
//
// The numbers are those of GetLastError.

#include <windows.h>

#include "os/system_error.h"
#include "os/windows_path.h"

namespace waste {

std::string SystemErrorText(int error) {
  wchar_t buffer[512];
  const DWORD flags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  const DWORD units = FormatMessageW(flags, nullptr, static_cast<DWORD>(error), 0, buffer,
                                     sizeof buffer / sizeof *buffer, nullptr);
  std::wstring_view text(buffer, units);
  while (!text.empty() && (text.back() <= L' ' || text.back() == L'.')) text.remove_suffix(1);
  return text.empty() ? "error " + std::to_string(error) : Utf8Of(text);
}

}  // namespace waste
