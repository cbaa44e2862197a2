// SPDX-License-Identifier: Apache-2.0
//
// One answer of a model, for `run` and `chat`: streams it while it is generated, which Ctrl-C
// cancels, and tells afterwards what was said and what it took.

#ifndef WASTE_EXAMPLES_CLI_ANSWER_H_
#define WASTE_EXAMPLES_CLI_ANSWER_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "handle.h"
#include "options.h"

namespace waste_cli {

struct Answer {
  std::string text;      // the response
  std::string thinking;  // what came before it, where the model thinks
  std::string tool;      // calls of tools, as the model writes them
  std::vector<int32_t> tokens;
  std::vector<double> logprobs;  // one a token, if asked for
  int32_t finish_reason = WASTE_FINISH_NONE;
  waste_stats stats = {};
};

enum class Show { kAsItComes, kNothing };

// Generates until the turn ends. kAsItComes writes the response to stdout, and thinking and tool
// calls to stderr. A cancelled answer is no Failure: finish_reason says so.
Answer Generate(const Generation& generation, const SamplingOptions& sampling, Show show);

// The keys of `run --json`.
nlohmann::ordered_json ToJson(const Answer& answer, const SamplingOptions& sampling,
                              const Model& model);

// On a terminal: one line of counts and speeds. With logprobs, also a table of the tokens.
void WriteSummary(const Answer& answer, const Model& model);

// `count` a second, 0 where no time was taken.
double PerSecond(int64_t count, int64_t time_us);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_ANSWER_H_
