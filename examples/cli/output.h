// SPDX-License-Identifier: Apache-2.0
//
// Where output goes: what was asked for to stdout, everything else to stderr. Every write is
// flushed, so that a reader of a pipe sees each piece as it comes and nothing is lost when the
// program is interrupted. A stdout that takes no more (a full disk) is a Failure. Main thread only.

#ifndef WASTE_EXAMPLES_CLI_OUTPUT_H_
#define WASTE_EXAMPLES_CLI_OUTPUT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace waste_cli {

bool StdoutIsTerminal();
bool StderrIsTerminal();

// Raw bytes to stdout.
void Write(std::string_view bytes);

// Text of a model to stdout. On a terminal control characters become visible: what a model says
// does not steer the user's terminal.
void WriteText(std::string_view text);

// The same to stderr, dimmed on a terminal: thinking, tool calls.
void WriteAside(std::string_view text);

// One JSON object and a newline to stdout; bytes that are no UTF-8 become U+FFFD.
void WriteJson(const nlohmann::ordered_json& object);

// A line to stderr.
void WriteNote(std::string_view line);

// The text with control characters other than newline and tab replaced by their code, "<1b>".
std::string VisibleText(std::string_view text);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_OUTPUT_H_
