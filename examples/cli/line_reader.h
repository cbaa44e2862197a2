// SPDX-License-Identifier: Apache-2.0
//
// Lines that the user types: with editing and history on a terminal (libedit), plain lines of stdin
// otherwise. The prompt goes to stderr, so that stdout holds answers only. Ctrl-C while a line is
// edited empties it. Main thread only; one at a time.

#ifndef WASTE_EXAMPLES_CLI_LINE_READER_H_
#define WASTE_EXAMPLES_CLI_LINE_READER_H_

#include <histedit.h>

#include <memory>
#include <optional>
#include <string>

namespace waste_cli {

class LineReader {
 public:
  LineReader();

  // The next line without its newline, or nothing at the end of the input.
  std::optional<std::string> Read();
  bool is_interactive() const { return editor_ != nullptr; }

 private:
  struct End {
    void operator()(EditLine* editor) const { el_end(editor); }
    void operator()(History* history) const { history_end(history); }
  };

  std::unique_ptr<History, End> history_;
  std::unique_ptr<EditLine, End> editor_;  // none if stdin or stderr is no terminal
};

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_LINE_READER_H_
