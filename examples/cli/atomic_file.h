// SPDX-License-Identifier: Apache-2.0
//
// Files that appear whole or not at all: written beside their place under another name, then
// renamed. A reader never sees half of one, and what fails leaves what was there before. Throws
// Failure. Any thread.

#ifndef WASTE_EXAMPLES_CLI_ATOMIC_FILE_H_
#define WASTE_EXAMPLES_CLI_ATOMIC_FILE_H_

#include <string>
#include <string_view>

namespace waste_cli {

// Whether WriteAtomically could work, as far as can be told without writing: for commands that
// work for minutes before they have something to write.
void CheckWritable(const std::string& path);

// Replaces the file, if there is one. What is no regular file (a device, a pipe) is refused.
void WriteAtomically(const std::string& path, std::string_view bytes);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_ATOMIC_FILE_H_
