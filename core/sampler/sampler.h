// SPDX-License-Identifier: Apache-2.0
//
// Logits to one token. In this order: logit bias, penalties, temperature, top-k, softmax in f64,
// top-p, min-p, one draw of PCG32. exp and log are our own (sampler/math.h) and every sum has a
// fixed order, so a seed gives the same tokens on every machine for the same logits. temperature 0
// is greedy: the largest after bias and penalties, the lowest id on ties, and no draw. Of equal
// values a cut keeps the lowest ids; top-p keeps the token that reaches the share; the likeliest is
// always kept. O(vocabulary) a token, whatever the logits: nothing is sorted. One thread.

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
  double repeat_penalty = 1;  // divides a positive logit, multiplies a negative one
  double presence_penalty = 0;
  double frequency_penalty = 0;
  int32_t penalty_window = 64;  // tokens back that the penalties look; each counts once for the
                                // first two, as often as it occurs for the third
  int64_t seed = 0;
  bool logprobs = false;
  std::vector<std::pair<int32_t, double>> bias = {};  // by token, added; -INFINITY forbids it
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
  // taken from its end). Does not allocate. Errors: kCorrupt if no logit is finite, or one is NaN
  // or +infinity, which only damaged weights cause; kArgument if the bias forbids all that are
  // finite.
  Result<SampledToken> Sample(std::span<const float> logits, std::span<const int32_t> recent);

 private:
  struct Candidate {
    int32_t id;
    double value;  // logit, then weight: probability times a constant
  };

  Status Load(std::span<const float> logits);
  void ApplyBiasAndPenalties(std::span<const int32_t> recent);
  int32_t Likeliest() const;
  double LogProbability(std::span<const float> logits, int32_t id) const;
  void CollectCandidates(int32_t likeliest);
  void KeepTopK();
  double WeighCandidates();
  void KeepTopP(double total);
  void KeepMinP();
  int32_t Draw();
  template <typename Mass>
  void KeepLargest(double target, const Mass& mass);

  const SamplerOptions options_;
  Pcg32 random_;
  std::vector<double> values_;         // [vocab_size] logits, biased and penalised
  std::vector<int32_t> counts_;        // [vocab_size] zero between calls; if there are penalties
  std::vector<Candidate> candidates_;  // by id
  std::vector<int32_t> undecided_;     // indices of candidates, while a cut is sought
  std::vector<double> digit_mass_;
};

}  // namespace waste

#endif  // WASTE_CORE_SAMPLER_SAMPLER_H_
