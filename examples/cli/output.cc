// SPDX-License-Identifier: Apache-2.0

#include "output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "failure.h"
#include "interrupt.h"

namespace waste_cli {
namespace {

constexpr int kPatienceMs = 200;

// C0 but for newline and tab, DEL, and the two bytes of C1 in UTF-8. Returns the bytes of the
// control character at `at`, or 0.
size_t ControlSize(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20) return byte == '\n' || byte == '\t' ? 0 : 1;
  if (byte == 0x7F) return 1;
  const bool is_c1 = byte == 0xC2 && at + 1 < text.size() &&
                     static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
                     static_cast<unsigned char>(text[at + 1]) < 0xA0;
  return is_c1 ? 2 : 0;
}

// Returns when stdout takes bytes. A reader that stands still does not keep Ctrl-C from working.
void AwaitReader() {
  pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  while (poll(&out, 1, kPatienceMs) == 0)
    if (WasInterrupted())
      throw OutputFailure("CANCELLED", "nobody reads standard output", kExitInterrupted);
}

}  // namespace

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) != 0; }
bool StderrIsTerminal() { return isatty(STDERR_FILENO) != 0; }

void Write(std::string_view bytes) {
  while (!bytes.empty()) {
    AwaitReader();
    // No more than a pipe takes at once, so that the write does not block.
    const ssize_t size =
        write(STDOUT_FILENO, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
    if (size >= 0) {
      bytes.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR && errno != EAGAIN) {
      throw OutputFailure("IO",
                          std::string("cannot write to standard output: ") + std::strerror(errno));
    }
  }
}

void WriteText(std::string_view text) {
  if (StdoutIsTerminal()) {
    Write(VisibleText(text));
  } else {
    Write(text);
  }
}

void WriteAside(std::string_view text) {
  if (StderrIsTerminal()) {
    std::fprintf(stderr, "\033[2m%s\033[0m", VisibleText(text).c_str());
  } else {
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  std::fflush(stderr);
}

void WriteJson(const nlohmann::ordered_json& object) {
  Write(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void WriteNote(std::string_view line) {
  if (StderrIsTerminal()) {
    std::fprintf(stderr, "\r\033[K%s\n", VisibleText(line).c_str());  // over a progress bar
  } else {
    std::fprintf(stderr, "%s\n", std::string(line).c_str());
  }
}

std::string VisibleText(std::string_view text) {
  std::string visible;
  visible.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = ControlSize(text, at);
    if (size == 0) {
      visible.push_back(text[at++]);
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "<%02x>", static_cast<unsigned char>(text[at + size - 1]));
    visible += code;
    at += size;
  }
  return visible;
}

}  // namespace waste_cli
