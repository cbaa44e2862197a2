// SPDX-License-Identifier: Apache-2.0

#include "version.h"

#include <array>
#include <iterator>

#include "waste/waste.h"

namespace waste_cli {

std::string LibraryVersion() {
  std::array<char, 64> text = {};
  waste_version(text.data(), std::ssize(text));
  return text.data();
}

std::string VersionLine() {
  return "waste " + LibraryVersion() + " (ABI " + std::to_string(waste_abi_version()) + ")";
}

}  // namespace waste_cli
