// SPDX-License-Identifier: Apache-2.0
//
// Sizes in bytes as people write and read them: 4G, 512M, 1.5G, 65536. Units are binary: K is 1024
// bytes. Pure functions.

#ifndef WASTE_EXAMPLES_CLI_SIZES_H_
#define WASTE_EXAMPLES_CLI_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>

namespace waste_cli {

// "4G", "512MiB", "1.5g", "65536"; nothing for anything else, for 0 and for what overflows.
std::optional<int64_t> ParseSize(const std::string& text);

// "3.81 GiB", "17 bytes".
std::string SizeText(int64_t size_bytes);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_SIZES_H_
