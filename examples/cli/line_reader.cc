// SPDX-License-Identifier: Apache-2.0

#include "line_reader.h"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace waste_cli {
namespace {

constexpr int kHistoryLines = 500;

const char* Prompt(EditLine*) { return "> "; }

unsigned char EmptyLine(EditLine* editor, int) {
  const LineInfoW* line = el_wline(editor);
  el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
  el_deletestr(editor, static_cast<int>(line->lastchar - line->buffer));
  return CC_REFRESH;
}

// libedit takes the characters of the terminal from the locale; all of ours are UTF-8.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

LineReader::LineReader() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return;
  UseUtf8();
  history_.reset(history_init());
  HistEvent event;
  history(history_.get(), &event, H_SETSIZE, kHistoryLines);
  history(history_.get(), &event, H_SETUNIQUE, 1);
  editor_.reset(el_init("waste", stdin, stderr, stderr));
  if (!editor_) return;
  el_set(editor_.get(), EL_PROMPT, Prompt);
  el_set(editor_.get(), EL_EDITOR, "emacs");
  el_set(editor_.get(), EL_HIST, history, history_.get());
  el_set(editor_.get(), EL_SETTY, "-d", "-isig", nullptr);  // Ctrl-C is a key here
  el_set(editor_.get(), EL_ADDFN, "empty-line", "Empty the line", EmptyLine);
  el_set(editor_.get(), EL_BIND, "^C", "empty-line", nullptr);
  el_set(editor_.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

std::optional<std::string> LineReader::Read() {
  std::string line;
  if (!editor_) {
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  int size = 0;
  const char* text = el_gets(editor_.get(), &size);
  if (text == nullptr || size <= 0) return std::nullopt;
  line.assign(text, static_cast<size_t>(size));
  if (line.ends_with('\n')) line.pop_back();
  HistEvent event;
  if (!line.empty()) history(history_.get(), &event, H_ENTER, line.c_str());
  return line;
}

}  // namespace waste_cli
