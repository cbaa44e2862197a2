// SPDX-License-Identifier: Apache-2.0

#include "bench_sessions.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "options.h"

namespace waste_cli {
namespace {

// Long enough for answers that differ; reading it is not what is measured.
constexpr size_t kPromptTokens = 32;

constexpr size_t kLikeliest = 8;

// Best first.
std::array<size_t, kLikeliest> Likeliest(std::span<const float> logits) {
  std::array<size_t, kLikeliest> best = {};
  size_t count = 0;
  for (size_t token = 0; token < logits.size(); ++token) {
    if (count == kLikeliest && logits[token] <= logits[best.back()]) continue;
    size_t at = count < kLikeliest ? count++ : kLikeliest - 1;
    for (; at > 0 && logits[token] > logits[best[at - 1]]; --at) best[at] = best[at - 1];
    best[at] = token;
  }
  return best;
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return std::max(seconds.count(), 1e-9);
}

}  // namespace

Writer::Writer(const Model& model, uint32_t seed)
    : session_(Make<waste_session>([&](waste_session** out, waste_error* error) {
        return waste_session_create(model.get(), nullptr, out, error);
      })),
      logits_(static_cast<size_t>(InfoOf(model).vocab_size)),
      random_(seed) {}

void Writer::Reset() {
  Try([&](waste_error* error) { return waste_session_reset(session_.get(), error); });
}

void Writer::Eval(std::span<const int32_t> tokens) {
  Try([&](waste_error* error) {
    return waste_eval(session_.get(), tokens.data(), std::ssize(tokens), logits_.data(),
                      std::ssize(logits_), error);
  });
}

void Writer::Write(int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t token = Draw();
    Eval({&token, 1});
  }
}

// As likely as the model says, among those few.
int32_t Writer::Draw() {
  const auto best = Likeliest(logits_);
  std::array<double, kLikeliest> weights;
  std::transform(best.begin(), best.end(), weights.begin(), [&](size_t token) {
    return std::exp(double{logits_[token]} - logits_[best.front()]);
  });
  std::discrete_distribution<size_t> distribution(weights.begin(), weights.end());
  return static_cast<int32_t>(best[distribution(random_)]);
}

SessionsBench::SessionsBench(const Model& model, int32_t sessions, std::vector<int32_t> text,
                             int64_t tokens)
    : model_(model), text_(std::move(text)), tokens_(tokens) {
  const auto count = static_cast<size_t>(sessions);
  for (size_t i = 0; i < count; ++i) writers_.emplace_back(model, static_cast<uint32_t>(i + 1));
  speeds_.resize(count);
  phase_.tokens = sessions * tokens;
}

// What one throws is thrown here, once all have ended.
void SessionsBench::OnThreads(const std::function<void(size_t)>& work) {
  std::vector<std::future<void>> threads;
  for (size_t i = 0; i < writers_.size(); ++i)
    threads.push_back(std::async(std::launch::async, work, i));
  for (auto& thread : threads) thread.get();
}

void SessionsBench::Repeat(bool counts) {
  OnThreads([this](size_t i) {
    std::vector<int32_t> prompt(std::min(kPromptTokens, text_.size()));
    const size_t first = i * text_.size() / writers_.size();
    for (size_t at = 0; at < prompt.size(); ++at) prompt[at] = text_[(first + at) % text_.size()];
    writers_[i].Reset();
    writers_[i].Eval(prompt);
  });
  std::vector<double> seconds(writers_.size());
  const waste_stats before = StatsOf(model_);
  const double all = SecondsOf([&] {
    OnThreads([&](size_t i) { seconds[i] = SecondsOf([&] { writers_[i].Write(tokens_); }); });
  });
  if (!counts) return;
  phase_.Add(all, before, StatsOf(model_));
  for (size_t i = 0; i < seconds.size(); ++i)
    speeds_[i].push_back(static_cast<double>(tokens_) / seconds[i]);
}

nlohmann::ordered_json SessionsBench::Result(double alone_tok_s) const {
  std::vector<double> each;
  for (const std::vector<double>& speeds : speeds_) each.push_back(MedianOf(speeds));
  nlohmann::ordered_json object = {{"sessions", writers_.size()},
                                   {"gain", MedianOf(phase_.speeds) / alone_tok_s},
                                   {"session_tok_s", each}};
  object.update(ToJson(phase_));
  return object;
}

}  // namespace waste_cli
