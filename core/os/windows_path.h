// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 on our side, UTF-16 on the side of Windows. Paths beyond MAX_PATH get the prefix that lifts
// its limit. For the *_windows.cc files alone. Any thread.

#ifndef WASTE_CORE_OS_WINDOWS_PATH_H_
#define WASTE_CORE_OS_WINDOWS_PATH_H_

#include <string>
#include <string_view>

namespace waste {

// Ill-formed input becomes U+FFFD, which no file is called.
std::wstring WideOf(std::string_view utf8);
std::string Utf8Of(std::wstring_view wide);

// `path` as the calls whose names end in W take it.
std::wstring WidePath(const std::string& path);
// With the prefix in any case: for what goes down into folders.
std::wstring UnlimitedPath(const std::string& path);

}  // namespace waste

#endif  // WASTE_CORE_OS_WINDOWS_PATH_H_
