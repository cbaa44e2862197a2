// SPDX-License-Identifier: Apache-2.0
//
// How a command fails: an exception that carries what the user reads and what a script branches on.
// main() prints it, on stderr for people or as {"error": ...} on stdout under --json, and ends the
// program with its exit code.

#ifndef WASTE_EXAMPLES_CLI_FAILURE_H_
#define WASTE_EXAMPLES_CLI_FAILURE_H_

#include <cstdint>
#include <stdexcept>
#include <string>

#include "waste/waste.h"

namespace waste_cli {

// The exit codes of the program (docs/cli.md).
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;        // a file, the budget, the model, the system
inline constexpr int kExitUsage = 2;          // the command line itself
inline constexpr int kExitInterrupted = 130;  // Ctrl-C

struct Failure : std::runtime_error {
  Failure(std::string name, const std::string& message, int code = kExitFailure)
      : std::runtime_error(message), code_name(std::move(name)), exit_code(code) {}

  std::string code_name;  // "RAM_BUDGET"; the names of waste.h, and USAGE
  int exit_code;
  int64_t needed_bytes = 0;  // RAM_BUDGET: the smallest budget that would do
};

// stdout takes nothing any more: no command can go on.
struct OutputFailure : Failure {
  using Failure::Failure;
};

// What the command line asks for cannot be.
inline Failure UsageFailure(const std::string& message) {
  return Failure("USAGE", message, kExitUsage);
}

// An error of the library; `status` stands in where it left `error` empty.
Failure LibraryFailure(const waste_error& error, waste_status status);

// Prints it where the user or the script looks for it. Returns the exit code.
int Report(const Failure& failure, bool json);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_FAILURE_H_
