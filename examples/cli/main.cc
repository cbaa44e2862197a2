// SPDX-License-Identifier: Apache-2.0
//
// The `waste` program: a client of the public header, and the first one that a reader meets. It
// parses the command line, runs one command and reports how it failed.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <string_view>

#include "command.h"
#include "failure.h"
#include "interrupt.h"
#include "output.h"
#include "version.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Examples:
  waste run examples/mini/mini.waste "What is the capital of Italy?"
  waste chat model.waste --budget 16G
  waste convert Kimi-Linear-48B model.waste
  waste plan model.waste --budget 16G

`waste COMMAND --help` explains a command. --json makes its output one JSON object.
Exit codes: 0 done, 1 failed, 2 the command line is wrong, 130 interrupted.)";

void AddCommands(CLI::App& app, Program& program) {
  AddRun(app, program);
  AddChat(app, program);
  AddEval(app, program);
  AddTokenize(app, program);
  AddDetokenize(app, program);
  AddPlan(app, program);
  AddInfo(app, program);
  AddConvert(app, program);
  AddSynth(app, program);
  AddVerify(app, program);
  AddBench(app, program);
  AddDoctor(app, program);
  AddVersion(app, program);
}

// Whether --json stands on a command line that could not be parsed.
bool AsksForJson(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i)
    if (std::string_view(argv[i]) == "--json") return true;
  return false;
}

// What is wrong with the command line. CLI11 does not name a command that it does not know.
std::string UsageProblem(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (argc < 2) return "which command? " + std::string(error.what());
  const std::string first = argv[1];
  const auto is_first = [&](const CLI::App* command) { return command->get_name() == first; };
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const bool known = std::any_of(commands.begin(), commands.end(), is_first);
  return known || first.starts_with('-') ? error.what() : "there is no command '" + first + "'";
}

int Main(int argc, char** argv) {
  AwaitInterrupts();
  Program program;
  CLI::App app("Runs mixture-of-experts language models that are larger than memory.", "waste");
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionLine);
  app.footer(kFooter);
  AddCommands(app, program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const bool json = AsksForJson(argc, argv);
    if (!json && argc < 2) WriteNote(app.help());
    const int code = Report(UsageFailure(UsageProblem(app, error, argc, argv)), json);
    if (!json) WriteNote("`waste --help` and `waste COMMAND --help` tell what there is");
    return code;
  }
  try {
    return program.action();
  } catch (const Failure& failure) {
    return Report(failure, program.json);
  } catch (const std::bad_alloc&) {
    return Report(Failure("NO_MEMORY", "the system gave no memory"), program.json);
  } catch (const std::exception& error) {
    return Report(Failure("INTERNAL", error.what()), program.json);
  }
}

}  // namespace
}  // namespace waste_cli

int main(int argc, char** argv) { return waste_cli::Main(argc, argv); }
