// SPDX-License-Identifier: Apache-2.0

#include <nlohmann/json.hpp>

#include "arguments.h"
#include "command.h"
#include "output.h"
#include "version.h"
#include "waste/waste.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = "\nJSON: version, abi";

}  // namespace

void AddVersion(CLI::App& app, Program& program) {
  AddCommand(app, program, "version", "Tell the version of the library and of its ABI", kFooter,
             [&program] {
               if (program.json) {
                 WriteJson({{"version", LibraryVersion()}, {"abi", waste_abi_version()}});
               } else {
                 Write(VersionLine() + "\n");
               }
               return 0;
             });
}

}  // namespace waste_cli
