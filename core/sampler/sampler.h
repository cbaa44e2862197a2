// SPDX-License-Identifier: Apache-2.0
//
// Logits to one token. In this order: logit bias, penalties, temperature, top-k, softmax in f64,
// top-p, min-p, one draw of PCG32. exp and log are our own (sampler/math.h), so a seed gives the
// same tokens on every machine for the same logits. temperature 0 is greedy: the largest after bias
// and penalties, the lowest id on ties. O(vocabulary) a token plus a sort of what top-k or top-p
// keep. One thread.

#ifndef WASTE_CORE_SAMPLER_SAMPLER_H_
#define WASTE_CORE_SAMPLER_SAMPLER_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sampler/pcg32.h"

namespace waste {

struct SamplerOptions {
  double temperature = 0;
  int32_t top_k = 0;  // 0: all
  double top_p = 1;
  double min_p = 0;
  double repeat_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  int32_t penalty_window = 64;
  int64_t seed = 0;
  bool logprobs = false;
  std::vector<std::pair<int32_t, double>> bias;  // by token
};

// Ranges that make sense. Errors: kArgument naming the field and its value (NaN included).
Status CheckSamplerOptions(const SamplerOptions& options, int64_t vocab_size);

struct SampledToken {
  int32_t id;
  double logprob;  // of the raw logits (before bias and penalties); 0 unless asked for
};

class Sampler {
 public:
  // `options` have passed CheckSamplerOptions.
  Sampler(const SamplerOptions& options, int64_t vocab_size);

  // `logits` is [vocab_size]; `recent` holds the tokens of the session, latest last (the window is
  // taken from its end). Does not allocate after the first call. Errors: kCorrupt if no logit is
  // finite or one is NaN, which only damaged weights cause.
  Result<SampledToken> Sample(std::span<const float> logits, std::span<const int32_t> recent);

 private:
  struct Candidate {
    int32_t id;
    double value;  // logit, then probability
  };

  void ApplyBiasAndPenalties(std::span<const int32_t> recent);
  int32_t Draw();

  SamplerOptions options_;
  Pcg32 random_;
  std::vector<double> values_;          // [vocab_size]
  std::vector<Candidate> candidates_;
};

}  // namespace waste

#endif  // WASTE_CORE_SAMPLER_SAMPLER_H_
