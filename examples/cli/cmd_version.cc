// SPDX-License-Identifier: Apache-2.0

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "output.h"
#include "version.h"
#include "waste/waste.h"

namespace waste_cli {

void AddVersion(CLI::App& app, Program& program) {
  AddCommand(app, program, "version", "Tell the version of the library and of its ABI", [&program] {
    if (program.json) {
      WriteJson({{"version", LibraryVersion()}, {"abi", waste_abi_version()}});
    } else {
      Write(VersionLine() + "\n");
    }
    return 0;
  });
}

}  // namespace waste_cli
