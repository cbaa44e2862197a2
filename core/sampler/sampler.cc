// SPDX-License-Identifier: Apache-2.0

#include "sampler/sampler.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "base/check.h"
#include "sampler/math.h"

namespace waste {
namespace {

constexpr uint64_t kStream = 54;  // of PCG32; the seed picks the place in it
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr int kDigitBits = 11;  // of a key, decided in one pass
constexpr size_t kDigits = size_t{1} << kDigitBits;

// Limits that leave every f64 sum of logits, biases and penalties finite.
constexpr double kMaxTemperature = 1000;
constexpr double kMaxPenalty = 1000;
constexpr double kMaxBias = 1e9;

Status CheckRange(const std::string& name, double value, double low, double high) {
  if (value >= low && value <= high) return Status();
  return Failure(Code::kArgument, name, " is ", value, " and must be from ", low, " to ", high);
}

// Sorts as unsigned number like `value` does, -0 before 0.
uint64_t KeyOf(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

}  // namespace

Status CheckSamplerOptions(const SamplerOptions& options, int64_t vocab_size) {
  constexpr double kMaxCount = std::numeric_limits<int32_t>::max();
  WASTE_TRY(CheckRange("temperature", options.temperature, 0, kMaxTemperature));
  WASTE_TRY(CheckRange("top_k", options.top_k, 0, kMaxCount));
  WASTE_TRY(CheckRange("top_p", options.top_p, 0, 1));
  WASTE_TRY(CheckRange("min_p", options.min_p, 0, 1));
  WASTE_TRY(CheckRange("repeat_penalty", options.repeat_penalty, 1 / kMaxPenalty, kMaxPenalty));
  WASTE_TRY(CheckRange("presence_penalty", options.presence_penalty, -kMaxPenalty, kMaxPenalty));
  WASTE_TRY(CheckRange("frequency_penalty", options.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  WASTE_TRY(CheckRange("penalty_window", options.penalty_window, 0, kMaxCount));
  for (const auto& [token, bias] : options.bias) {
    if (token < 0 || token >= vocab_size)
      return Failure(Code::kArgument, "logit bias of token ", token, ": the vocabulary has ",
                     vocab_size, " tokens");
    if (bias == -kInfinity) continue;
    WASTE_TRY(
        CheckRange("logit bias of token " + std::to_string(token), bias, -kMaxBias, kMaxBias));
  }
  return Status();
}

Sampler::Sampler(const SamplerOptions& options, int64_t vocab_size)
    : options_(options), random_(static_cast<uint64_t>(options.seed), kStream) {
  const size_t size = static_cast<size_t>(vocab_size);
  values_.resize(size);
  if (options.repeat_penalty != 1 || options.presence_penalty != 0 ||
      options.frequency_penalty != 0)
    counts_.resize(size);
  if (options.temperature == 0) return;
  candidates_.reserve(size);
  undecided_.reserve(size);
  digit_mass_.resize(kDigits);
}

Result<SampledToken> Sampler::Sample(std::span<const float> logits,
                                     std::span<const int32_t> recent) {
  WASTE_CHECK(logits.size() == values_.size());
  WASTE_TRY(Load(logits));
  ApplyBiasAndPenalties(recent);
  int32_t id = Likeliest();
  if (values_[id] == -kInfinity)
    return Status(Code::kArgument, "the logit bias forbids every token that the model allows");
  if (options_.temperature > 0) {
    CollectCandidates(id);
    KeepTopK();
    const double total = WeighCandidates();
    KeepTopP(total);
    KeepMinP();
    id = Draw();
  }
  return SampledToken{id, options_.logprobs ? LogProbability(logits, id) : 0};
}

Status Sampler::Load(std::span<const float> logits) {
  bool any_finite = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit < std::numeric_limits<float>::infinity()))
      return Failure(Code::kCorrupt, "the logit of token ", i, " is ", logit,
                     "; the weights are damaged: verify the container");
    any_finite |= logit != -std::numeric_limits<float>::infinity();
    values_[i] = logit;
  }
  if (!any_finite)
    return Status(Code::kCorrupt,
                  "no logit is finite; the weights are damaged: verify the container");
  return Status();
}

void Sampler::ApplyBiasAndPenalties(std::span<const int32_t> recent) {
  for (const auto& [token, bias] : options_.bias) values_[token] += bias;
  if (counts_.empty()) return;
  const auto known = [&](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < counts_.size();
  };
  const auto window =
      recent.last(std::min(recent.size(), static_cast<size_t>(options_.penalty_window)));
  for (const int32_t token : window)
    if (known(token)) ++counts_[token];
  for (const int32_t token : window) {
    if (!known(token) || counts_[token] == 0) continue;  // 0: penalised already
    double& value = values_[token];
    value = value > 0 ? value / options_.repeat_penalty : value * options_.repeat_penalty;
    value -= options_.presence_penalty + options_.frequency_penalty * counts_[token];
    counts_[token] = 0;
  }
}

int32_t Sampler::Likeliest() const {
  return static_cast<int32_t>(std::max_element(values_.begin(), values_.end()) - values_.begin());
}

double Sampler::LogProbability(std::span<const float> logits, int32_t id) const {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += PortableExp(logit - max);
  return (logits[id] - max) - PortableLog(sum);
}

// Relative to the largest, so that no temperature is too small to divide by.
void Sampler::CollectCandidates(int32_t likeliest) {
  const double max = values_[likeliest];
  candidates_.clear();
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i] != -kInfinity)
      candidates_.push_back({static_cast<int32_t>(i), (values_[i] - max) / options_.temperature});
}

void Sampler::KeepTopK() {
  if (options_.top_k == 0 || static_cast<size_t>(options_.top_k) >= candidates_.size()) return;
  KeepLargest(options_.top_k, [](const Candidate&) { return 1.0; });
}

// Returns the sum of the weights.
double Sampler::WeighCandidates() {
  double total = 0;
  for (Candidate& c : candidates_) total += c.value = PortableExp(c.value);
  return total;
}

void Sampler::KeepTopP(double total) {
  if (options_.top_p >= 1) return;
  KeepLargest(options_.top_p * total, [](const Candidate& c) { return c.value; });
}

void Sampler::KeepMinP() {
  if (options_.min_p == 0) return;
  double max = 0;
  for (const Candidate& c : candidates_) max = std::max(max, c.value);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.value < options_.min_p * max; });
}

int32_t Sampler::Draw() {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.value;
  const double target = random_.NextUnit() * total;
  double sum = 0;
  for (const Candidate& c : candidates_)
    if ((sum += c.value) > target) return c.id;
  WASTE_CHECK(false);  // the target is below the total, summed in the same order
}

// Keeps the fewest of the largest candidates (of equal ones the lowest ids) whose masses reach
// `target`, in their order by id. The last one to keep is found digit by digit of its key, the
// highest first: the masses of the candidates that agree so far, summed by their next digit, tell
// which digit the last one has. That is O(candidates) for any values, and the sums have one order.
template <typename Mass>
void Sampler::KeepLargest(double target, const Mass& mass) {
  undecided_.resize(candidates_.size());
  for (size_t i = 0; i < undecided_.size(); ++i) undecided_[i] = static_cast<int32_t>(i);
  double above = 0;  // mass of what is larger than all undecided ones
  for (int shift = 64; shift > 0;) {
    shift = std::max(shift - kDigitBits, 0);  // the last digit overlaps the one before
    const auto digit = [&](int32_t i) {
      return KeyOf(candidates_[i].value) >> shift & (kDigits - 1);
    };
    std::fill(digit_mass_.begin(), digit_mass_.end(), 0.0);
    for (const int32_t i : undecided_) digit_mass_[digit(i)] += mass(candidates_[i]);
    // If rounding leaves the target out of reach, the last is the lowest that has any mass.
    size_t last = kDigits;
    double above_last = above;
    for (size_t d = kDigits; d-- > 0;) {
      if (digit_mass_[d] == 0) continue;
      last = d;
      above_last = above;
      above += digit_mass_[d];
      if (above >= target) break;
    }
    above = above_last;
    std::erase_if(undecided_, [&](int32_t i) { return digit(i) != last; });
  }
  // Only equal ones are left, by id.
  size_t kept = 0;
  while (kept < undecided_.size() && (kept == 0 || above < target))
    above += mass(candidates_[undecided_[kept++]]);
  const Candidate last = candidates_[undecided_[kept - 1]];
  std::erase_if(candidates_, [&](const Candidate& c) {
    return c.value < last.value || (c.value == last.value && c.id > last.id);
  });
}

}  // namespace waste
