// SPDX-License-Identifier: Apache-2.0

#include <windows.h>

#include "os/windows_path.h"

namespace waste {
namespace {

constexpr size_t kShortPath = 240;  // below MAX_PATH by more than a folder's 8.3 reserve

}  // namespace

std::wstring WideOf(std::string_view utf8) {
  const int bytes = static_cast<int>(utf8.size());
  const int units = MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, nullptr, 0);
  std::wstring wide(static_cast<size_t>(units), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, wide.data(), units);
  return wide;
}

std::string Utf8Of(std::wstring_view wide) {
  const int units = static_cast<int>(wide.size());
  const int bytes =
      WideCharToMultiByte(CP_UTF8, 0, wide.data(), units, nullptr, 0, nullptr, nullptr);
  std::string utf8(static_cast<size_t>(bytes), '\0');
  WideCharToMultiByte(CP_UTF8, 0, wide.data(), units, utf8.data(), bytes, nullptr, nullptr);
  return utf8;
}

std::wstring WidePath(const std::string& path) {
  std::wstring wide = WideOf(path);
  return wide.size() < kShortPath ? wide : UnlimitedPath(path);
}

// The prefix turns off all that Windows does to a path: it must be absolute and have backslashes.
std::wstring UnlimitedPath(const std::string& path) {
  const std::wstring wide = WideOf(path);
  if (wide.starts_with(LR"(\\?\)")) return wide;
  const DWORD needed = GetFullPathNameW(wide.c_str(), 0, nullptr, nullptr);
  std::wstring full(needed, L'\0');
  const DWORD used = GetFullPathNameW(wide.c_str(), needed, full.data(), nullptr);
  if (used == 0 || used >= needed) return wide;
  full.resize(used);
  if (full.starts_with(LR"(\\)")) return LR"(\\?\UNC)" + full.substr(1);
  return LR"(\\?\)" + full;
}

}  // namespace waste
