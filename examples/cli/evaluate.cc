// SPDX-License-Identifier: Apache-2.0

#include "evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "options.h"
#include "progress.h"

namespace waste_cli {
namespace {

constexpr int64_t kLogitFloats = int64_t{1} << 22;  // 16 MiB of logits a step
constexpr int64_t kMaxRows = 64;

Session NewSession(const Model& model) {
  return Make<waste_session>([&](waste_session** out, waste_error* error) {
    return waste_session_create(model.get(), nullptr, out, error);
  });
}

void Feed(const Session& session, std::span<const int32_t> tokens, std::span<float> logits) {
  Try([&](waste_error* error) {
    return waste_eval(session.get(), tokens.data(), std::ssize(tokens), logits.data(),
                      std::ssize(logits), error);
  });
}

// One window after another through one session.
class Evaluator {
 public:
  Evaluator(const Model& model, std::span<const int32_t> tokens)
      : tokens_(tokens),
        session_(NewSession(model)),
        vocab_(InfoOf(model).vocab_size),
        rows_(std::clamp<int64_t>(kLogitFloats / vocab_, 1, kMaxRows)),
        logits_(static_cast<size_t>(rows_ * vocab_)) {}

  // Adds up the tokens [first, end), first > begin, given those from `begin` on.
  void Window(int64_t begin, int64_t first, int64_t end) {
    Try([&](waste_error* error) { return waste_session_reset(session_.get(), error); });
    // The token before the first counted one gives the logits that predict it.
    for (int64_t at = begin; at < first - 1;)
      at += Step(at, std::min(rows_, first - 1 - at), false);
    for (int64_t at = first - 1; at < end - 1;) at += Step(at, std::min(rows_, end - 1 - at), true);
  }

  double nll() const { return nll_; }

 private:
  // Feeds `count` tokens; if they count, each predicts the one after it.
  int64_t Step(int64_t at, int64_t count, bool counts) {
    const std::span<float> logits(logits_.data(), counts ? static_cast<size_t>(count * vocab_) : 0);
    Feed(session_, tokens_.subspan(static_cast<size_t>(at), static_cast<size_t>(count)), logits);
    for (int64_t row = 0; counts && row < count; ++row) {
      const auto of_row =
          logits.subspan(static_cast<size_t>(row * vocab_), static_cast<size_t>(vocab_));
      const auto next = static_cast<size_t>(tokens_[static_cast<size_t>(at + row + 1)]);
      nll_ += LogSumExp(of_row) - static_cast<double>(of_row[next]);
    }
    bar_.Show(at + count, std::ssize(tokens_));
    return count;
  }

  const std::span<const int32_t> tokens_;
  const Session session_;
  const int64_t vocab_;
  const int64_t rows_;
  std::vector<float> logits_;
  ProgressBar bar_{"Evaluating", Unit::kPieces};
  double nll_ = 0;
};

}  // namespace

Likelihood EvaluateText(const Model& model, std::span<const int32_t> tokens) {
  const int64_t count = std::ssize(tokens);
  if (count < 2)
    throw Failure("ARGUMENT", "the text has " + std::to_string(count) +
                                  " tokens; one that can be predicted from another needs 2");
  const auto start = std::chrono::steady_clock::now();
  const int64_t context = InfoOf(model).context;
  if (context < 2) throw Failure("ARGUMENT", "a context of one token predicts nothing");
  Evaluator evaluator(model, tokens);
  int64_t begin = 0;
  for (int64_t first = 1; first < count;) {
    const int64_t end = std::min(begin + context, count);
    evaluator.Window(begin, first, end);
    first = end;
    begin = end - context / 2;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double mean = evaluator.nll() / static_cast<double>(count - 1);
  return {count - 1, mean, std::exp(mean), context, seconds.count()};
}

std::vector<Candidate> LikeliestNext(const Model& model, std::span<const int32_t> tokens,
                                     int64_t count) {
  const auto vocab = static_cast<size_t>(InfoOf(model).vocab_size);
  std::vector<float> logits(vocab);
  Feed(NewSession(model), tokens, logits);
  std::vector<int32_t> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    const float at_a = logits[static_cast<size_t>(a)];
    const float at_b = logits[static_cast<size_t>(b)];
    return at_a > at_b || (at_a == at_b && a < b);
  });
  const double log_sum = LogSumExp(logits);
  std::vector<Candidate> candidates;
  for (auto token = order.begin(); token != end; ++token)
    candidates.push_back(
        {*token, static_cast<double>(logits[static_cast<size_t>(*token)]) - log_sum});
  return candidates;
}

double LogSumExp(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

}  // namespace waste_cli
