// SPDX-License-Identifier: Apache-2.0
//
// How a command declares its arguments. CLI11 is behind this header: its templates cost seconds a
// file, and numbers are checked in one place, so that a zero never reaches the library as "default"
// when the user wrote it. A value stays as it is if its argument is not given.

#ifndef WASTE_EXAMPLES_CLI_ARGUMENTS_H_
#define WASTE_EXAMPLES_CLI_ARGUMENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command.h"

namespace waste_cli {

// Adds a command with --json; `run` is what it does, `footer` what --help ends with.
CLI::App& AddCommand(CLI::App& app, Program& program, const char* name, const char* description,
                     const char* footer, std::function<int()> run);

// An argument that has to be given, by its place.
void AddRequired(CLI::App& command, const std::string& name, std::string& value,
                 const std::string& description);

// Below, a name with dashes is an option, one without an argument by its place.

// `check` returns what is wrong with the text, or an empty text.
using TextCheck = std::function<std::string(const std::string&)>;
void AddText(CLI::App& command, const std::string& name, std::string& value,
             const std::string& description, const TextCheck& check = nullptr);
void AddText(CLI::App& command, const std::string& name, std::optional<std::string>& value,
             const std::string& description);
void AddTexts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
              const std::string& description);  // repeatable, one text each time
void AddFlag(CLI::App& command, const std::string& name, bool& value,
             const std::string& description);

// Numbers of [low, high]; what is no number, or not finite, is refused.
void AddInteger(CLI::App& command, const std::string& name, int32_t& value,
                const std::string& description, int64_t low, int64_t high = INT32_MAX);
void AddInteger(CLI::App& command, const std::string& name, int64_t& value,
                const std::string& description, int64_t low, int64_t high = INT64_MAX);
void AddInteger(CLI::App& command, const std::string& name, std::optional<int64_t>& value,
                const std::string& description);
void AddIntegers(CLI::App& command, const std::string& name, std::vector<int32_t>& values,
                 const std::string& description);
void AddOneOf(CLI::App& command, const std::string& name, int32_t& value,
              const std::vector<int32_t>& choices, const std::string& description);
void AddNumber(CLI::App& command, const std::string& name, double& value,
               const std::string& description, double low, double high);

// One of a few: `value` becomes what the word stands for.
void AddChoice(CLI::App& command, const std::string& name, int32_t& value,
               const std::map<std::string, int32_t>& choices, const std::string& description);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_ARGUMENTS_H_
