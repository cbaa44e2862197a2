// SPDX-License-Identifier: Apache-2.0

#include "command.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace waste_cli {

CLI::App& AddCommand(CLI::App& app, Program& program, const char* name, const char* description,
                     std::function<int()> run) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.add_flag("--json", program.json, "Write one JSON object to stdout");
  command.callback([&program, run = std::move(run)] { program.action = run; });
  return command;
}

}  // namespace waste_cli
