// SPDX-License-Identifier: Apache-2.0
//
// Options that several commands share: how a model is opened and how tokens are drawn. Each Add...
// declares them, the ...Of functions give the library's form of them.

#ifndef WASTE_EXAMPLES_CLI_OPTIONS_H_
#define WASTE_EXAMPLES_CLI_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "handle.h"

namespace waste_cli {

// The container, and where and how it runs.
struct ModelOptions {
  std::string path;
  std::string budget = "auto";
  int32_t threads = 0;
  std::string cpus;
  int64_t context = 0;
  int32_t io = WASTE_IO_AUTO;
  int32_t lanes = 0;
  bool no_lookahead = false;
  bool exact = false;
  int32_t isa = WASTE_ISA_BEST;
};

// How the next token is chosen, and when to stop.
struct SamplingOptions {
  int32_t max_tokens = 0;
  double temperature = 0;
  double top_p = 1;
  double min_p = 0;
  int32_t top_k = 0;
  double repeat_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::optional<int64_t> seed;
  bool logprobs = false;
  std::vector<std::string> stops;
};

void AddModelOptions(CLI::App& command, ModelOptions& options);
void AddSamplingOptions(CLI::App& command, SamplingOptions& options);

// Points into `options`.
waste_open_options OpenOptionsOf(const ModelOptions& options);
waste_generation_options GenerationOptionsOf(const SamplingOptions& options);

// A random seed where sampling needs one and the user named none, so that --json can tell it.
int64_t ChooseSeed(const SamplingOptions& options);

// Opens the model, with a progress bar and Ctrl-C.
Model OpenModel(const ModelOptions& options);

waste_info InfoOf(const Model& model);
waste_stats StatsOf(const Model& model);
const char* IsaName(int32_t isa);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_OPTIONS_H_
