// SPDX-License-Identifier: Apache-2.0
//
// The file behind a scripted model, parsed: answers as tokens, and what happens before each.
// Unknown keys are errors, so that a typing mistake in a test does not pass unseen. Plain data.

#ifndef WASTE_CORE_ENGINE_SCRIPT_H_
#define WASTE_CORE_ENGINE_SCRIPT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace waste {

struct ScriptFailure {
  Status status;
  int64_t times = 1;  // how often it happens before the step succeeds
};

// What happens before the token at an index of an answer is given.
struct ScriptEvent {
  int64_t stall_ms = 0;
  std::optional<ScriptFailure> failure;
};

struct ScriptAnswer {
  std::vector<int32_t> tokens;
  bool endless = false;  // the last token repeats for ever; else the turn ends behind it
  std::map<int64_t, ScriptEvent> events;  // by index; tokens.size() is "before the end"
};

struct Script {
  int64_t context = 4096;
  int64_t floor_bytes = 1 << 20;
  int64_t open_stall_ms = 0;
  int64_t prefill_stall_ms = 0;  // for each step of a prompt
  Status open_failure;
  std::vector<ScriptAnswer> answers;  // the n-th prompt gets the n-th, and round again
  std::vector<uint8_t> rank_file;     // every byte, and each string of the answers as one token
  std::vector<std::pair<int32_t, std::string>> specials;  // K3's names
  int64_t vocab = 0;
  int32_t end_token = 0;
};

// Errors: kIo, kFormat naming the file and the place.
Result<Script> ReadScript(const std::string& path);

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_SCRIPT_H_
