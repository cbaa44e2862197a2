// SPDX-License-Identifier: Apache-2.0
//
// A container opened and ready to run steps, for tests of the forward pass: weights, threads, a
// source of experts that is all in memory and can be made to fail, and a Forward over them.

#ifndef WASTE_TESTS_SUPPORT_MODEL_RIG_H_
#define WASTE_TESTS_SUPPORT_MODEL_RIG_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "model/forward.h"
#include "support/resident_experts.h"
#include "support/tiny_model.h"

namespace waste {

// Every expert in memory, at most `most` in one call; call number `fail_at` fails. With `scatter`,
// they come in another order each time and a few at a time, the first time none. With `ahead`, the
// log has what was asked for and, up to so many at a time, what was expected.
class ScatteredExperts : public ExpertSource {
 public:
  struct Entry {
    int32_t layer;
    std::vector<int32_t> experts;
    bool expected;  // and not asked for
  };

  ScatteredExperts(const Container& container, int64_t most, bool scatter, int64_t ahead)
      : resident_(container), most_(most), scatter_(scatter), ahead_(ahead) {}

  int64_t max_experts() const override { return most_; }
  int64_t max_expected() const override { return ahead_; }
  void Expect(int32_t layer, std::span<const int32_t> experts) override {
    if (!fetching_) throw std::logic_error("experts were expected outside of a fetch");
    log.push_back({layer, {experts.begin(), experts.end()}, true});
  }

  Status Fetch(int32_t layer, std::span<const int32_t> experts, const std::function<bool()>& stop,
               const Use& use) override {
    if (static_cast<int64_t>(experts.size()) > most_)
      throw std::logic_error("more experts than can be fetched at once were asked for");
    if (!std::is_sorted(experts.begin(), experts.end()))
      throw std::logic_error("experts were not asked for in ascending order");
    if (calls++ == fail_at) return Status(Code::kIo, "the drive was unplugged");
    fetched += static_cast<int64_t>(experts.size());
    if (ahead_ > 0) log.push_back({layer, {experts.begin(), experts.end()}, false});
    fetching_ = true;
    const Status status = Hand(layer, experts, stop, use);
    fetching_ = false;
    return status;
  }

  int64_t calls = 0;
  int64_t fetched = 0;
  int64_t fail_at = -1;
  std::vector<Entry> log;

 private:
  Status Hand(int32_t layer, std::span<const int32_t> experts, const std::function<bool()>& stop,
              const Use& use) {
    if (!scatter_) return resident_.Fetch(layer, experts, stop, use);
    return resident_.Fetch(layer, experts, stop, [&](std::span<const ArrivedExpert> all) {
      std::vector<ArrivedExpert> order(all.begin(), all.end());
      std::shuffle(order.begin(), order.end(), random_);
      use({});
      for (size_t at = 0; at < order.size();) {
        const size_t count = std::min<size_t>(1 + random_() % 3, order.size() - at);
        use(std::span(order).subspan(at, count));
        at += count;
      }
    });
  }

  ResidentExperts resident_;
  int64_t most_;
  bool scatter_;
  int64_t ahead_;
  bool fetching_ = false;
  std::mt19937 random_{7};
};

struct RigOptions {
  int32_t threads = 1;
  Isa isa = Isa::kScalar;
  const Kernels* kernels = nullptr;  // instead of those of the ISA
  int64_t max_experts = std::numeric_limits<int32_t>::max();
  bool scatter = false;
  int64_t ahead = 0;
  ForwardOptions forward = {};
};

class ModelRig {
 public:
  explicit ModelRig(const TinyModel& model, const RigOptions& options = {})
      : container(model.Open()),
        config(Require(ParseModelConfig(container->manifest(), false))),
        weights(Require(Weights::Load(*container, config, progress))),
        pool(Require(ThreadPool::Create(options.threads))),
        experts(*container, options.max_experts, options.scatter, options.ahead),
        forward(Require(Forward::Create(
            config, *weights, *container,
            options.kernels != nullptr ? *options.kernels : *Require(KernelsFor(options.isa)),
            *pool, experts, options.forward))) {}

  std::unique_ptr<SessionState> NewState(int64_t context = 512) const {
    return Require(SessionState::Create(config, context));
  }

  // Runs `tokens` on `state`, `chunk` rows a step; the logits of every token.
  std::vector<float> Run(SessionState& state, std::span<const int32_t> tokens, int64_t chunk,
                         bool is_prompt = true) {
    std::vector<float> logits(tokens.size() * static_cast<size_t>(config.vocab));
    const int64_t count = static_cast<int64_t>(tokens.size());
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t rows = std::min(chunk, count - begin);
      SessionRows step{&state, tokens.subspan(begin, rows),
                       std::span(logits).subspan(begin * config.vocab, rows * config.vocab),
                       is_prompt};
      Require(forward->Step({&step, 1}, {}));
    }
    return logits;
  }

  std::vector<float> RunAlone(std::span<const int32_t> tokens, int64_t chunk,
                              bool is_prompt = true) {
    const auto state = NewState();
    return Run(*state, tokens, chunk, is_prompt);
  }

  Progress progress;
  std::unique_ptr<Container> container;
  ModelConfig config;
  std::unique_ptr<Weights> weights;
  std::unique_ptr<ThreadPool> pool;
  ScatteredExperts experts;
  std::unique_ptr<Forward> forward;
};

inline std::vector<int32_t> RandomTokens(int64_t count, int64_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab);
  return tokens;
}

inline std::vector<uint8_t> SavedBytesOf(const SessionState& state) {
  std::vector<uint8_t> bytes(static_cast<size_t>(state.SavedBytes()));
  state.SaveTo(bytes);
  return bytes;
}

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_MODEL_RIG_H_
