// SPDX-License-Identifier: Apache-2.0
//
// Which library this program runs with, for `waste version` and `waste --version`: the one that was
// loaded, not the one whose header was compiled.

#ifndef WASTE_EXAMPLES_CLI_VERSION_H_
#define WASTE_EXAMPLES_CLI_VERSION_H_

#include <string>

namespace waste_cli {

std::string LibraryVersion();  // "0.1.0"
std::string VersionLine();     // "waste 0.1.0 (ABI 0)"

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_VERSION_H_
