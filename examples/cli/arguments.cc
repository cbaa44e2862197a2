// SPDX-License-Identifier: Apache-2.0

#include "arguments.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <system_error>
#include <utility>

namespace waste_cli {
namespace {

// A whole text that is a number of [low, high]. CLI11's own ranges let NaN pass.
template <typename Number>
CLI::Validator Between(Number low, Number high) {
  return CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        Number number = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc() || rest != end) return "'" + text + "' is not a number that fits";
        if (number >= low && number <= high) return {};
        return text + " is not between " + CLI::detail::to_string(low) + " and " +
               CLI::detail::to_string(high);
      },
      "");
}

// An option is shown with what follows it, an argument by its place with its name alone.
std::string TypeName(const std::string& name, const char* type) {
  return name.starts_with('-') ? type : "";
}

}  // namespace

CLI::App& AddCommand(CLI::App& app, Program& program, const char* name, const char* description,
                     const char* footer, std::function<int()> run) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.add_flag("--json", program.json, "Write one JSON object to stdout");
  command.footer(footer);
  command.callback([&program, run = std::move(run)] { program.action = run; });
  return command;
}

void AddRequired(CLI::App& command, const std::string& name, std::string& value,
                 const std::string& description) {
  command.add_option(name, value, description)->required()->type_name("");
}

void AddText(CLI::App& command, const std::string& name, std::string& value,
             const std::string& description, const TextCheck& check) {
  CLI::Option* option =
      command.add_option(name, value, description)->type_name(TypeName(name, "TEXT"));
  if (check) option->check(check);
}

void AddText(CLI::App& command, const std::string& name, std::optional<std::string>& value,
             const std::string& description) {
  command.add_option(name, value, description)->type_name(TypeName(name, "TEXT"));
}

void AddTexts(CLI::App& command, const std::string& name, std::vector<std::string>& values,
              const std::string& description) {
  command.add_option(name, values, description)->allow_extra_args(false)->type_name("TEXT");
}

void AddFlag(CLI::App& command, const std::string& name, bool& value,
             const std::string& description) {
  command.add_flag(name, value, description);
}

void AddInteger(CLI::App& command, const std::string& name, int32_t& value,
                const std::string& description, int64_t low, int64_t high) {
  command.add_option(name, value, description)->check(Between(low, high))->type_name("N");
}

void AddInteger(CLI::App& command, const std::string& name, int64_t& value,
                const std::string& description, int64_t low, int64_t high) {
  command.add_option(name, value, description)->check(Between(low, high))->type_name("N");
}

void AddInteger(CLI::App& command, const std::string& name, std::optional<int64_t>& value,
                const std::string& description) {
  command.add_option(name, value, description)
      ->check(Between<int64_t>(INT64_MIN, INT64_MAX))
      ->type_name("N");
}

void AddIntegers(CLI::App& command, const std::string& name, std::vector<int32_t>& values,
                 const std::string& description) {
  command.add_option(name, values, description)
      ->check(Between<int64_t>(INT32_MIN, INT32_MAX))
      ->type_name(TypeName(name, "N ..."));
}

void AddOneOf(CLI::App& command, const std::string& name, int32_t& value,
              const std::vector<int32_t>& choices, const std::string& description) {
  command.add_option(name, value, description)->check(CLI::IsMember(choices))->type_name("N");
}

void AddNumber(CLI::App& command, const std::string& name, double& value,
               const std::string& description, double low, double high) {
  command.add_option(name, value, description)->check(Between(low, high))->type_name("X");
}

void AddChoice(CLI::App& command, const std::string& name, int32_t& value,
               const std::map<std::string, int32_t>& choices, const std::string& description) {
  command
      .add_option_function<std::string>(
          name, [&value, choices](const std::string& choice) { value = choices.at(choice); },
          description)
      ->check(CLI::IsMember(choices))
      ->type_name("NAME");
}

}  // namespace waste_cli
