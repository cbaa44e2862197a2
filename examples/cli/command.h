// SPDX-License-Identifier: Apache-2.0
//
// The commands of the program. Each Add... declares the options of one command, with a help that
// teaches, and stores in `program` what runs once the whole command line is known to be sound. One
// file a command: cmd_<name>.cc.

#ifndef WASTE_EXAMPLES_CLI_COMMAND_H_
#define WASTE_EXAMPLES_CLI_COMMAND_H_

#include <functional>

namespace CLI {
class App;
}

namespace waste_cli {

struct Program {
  bool json = false;            // --json, of every command
  std::function<int()> action;  // the command asked for; returns the exit code
};

void AddRun(CLI::App& app, Program& program);
void AddChat(CLI::App& app, Program& program);
void AddEval(CLI::App& app, Program& program);
void AddTokenize(CLI::App& app, Program& program);
void AddDetokenize(CLI::App& app, Program& program);
void AddPlan(CLI::App& app, Program& program);
void AddInfo(CLI::App& app, Program& program);
void AddConvert(CLI::App& app, Program& program);
void AddSynth(CLI::App& app, Program& program);
void AddVerify(CLI::App& app, Program& program);
void AddBench(CLI::App& app, Program& program);
void AddDoctor(CLI::App& app, Program& program);
void AddVersion(CLI::App& app, Program& program);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_COMMAND_H_
