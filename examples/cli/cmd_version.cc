// SPDX-License-Identifier: Apache-2.0

#include <nlohmann/json.hpp>

#include "arguments.h"
#include "command.h"
#include "machine.h"
#include "output.h"
#include "version.h"
#include "waste/waste.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
The instruction sets are those of this machine that --isa takes, the best one first.

Examples:
  waste version
JSON: version, abi, isas)";

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void AddVersion(CLI::App& app, Program& program) {
  AddCommand(app, program, "version",
             "Tell the version of the library and of its ABI, and the instruction sets there are",
             kFooter, [&program] {
               if (program.json) {
                 WriteJson({{"version", LibraryVersion()},
                            {"abi", waste_abi_version()},
                            {"isas", InstructionSets()}});
               } else {
                 Write(VersionLine() + "\ninstruction sets: " + Joined(InstructionSets()) + "\n");
               }
               return 0;
             });
}

}  // namespace waste_cli
