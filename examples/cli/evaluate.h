// SPDX-License-Identifier: Apache-2.0
//
// Log-likelihoods from the logits of waste_eval, in double. Long texts run in windows of the
// session's context (see EvaluateText), in steps small enough that the logits stay small.

#ifndef WASTE_EXAMPLES_CLI_EVALUATE_H_
#define WASTE_EXAMPLES_CLI_EVALUATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "handle.h"

namespace waste_cli {

struct Likelihood {
  int64_t tokens = 0;   // that were predicted from something
  double mean_nll = 0;  // natural logarithm
  double perplexity = 0;
  int64_t context = 0;  // tokens of a window
  double seconds = 0;
};

struct Candidate {
  int32_t token;
  double logprob;
};

// Every token but the first is predicted from those before it in its window. The first window holds
// `context` tokens, each later one begins with the last half of the one before.
Likelihood EvaluateText(const Model& model, std::span<const int32_t> tokens);

// The `count` likeliest tokens after `tokens`, best first; equal ones by id.
std::vector<Candidate> LikeliestNext(const Model& model, std::span<const int32_t> tokens,
                                     int64_t count);

// log(sum(exp(logits))), the number to take from a logit to get a log-probability.
double LogSumExp(std::span<const float> logits);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_EVALUATE_H_
