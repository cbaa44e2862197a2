// SPDX-License-Identifier: Apache-2.0
//
// context_bench MODEL --text 512 --text 2048,4096: tokens a second along one text, by the public
// interface. Each --text begins anew, reads up to the first position in one go, writes some tokens
// there, reads on to the next position, and so on: long positions cost one reading, where `waste
// bench` reads every prompt twice. What is read are tokens by chance, which repeat no expert more
// often than others; the first ones are read without being counted, to fill the cache. Prints JSON,
// and a line for each part to stderr.

#include <waste/waste.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;

struct Free {
  void operator()(void* object) const { waste_free(object); }
};

// Throws what the library reports.
template <typename Call>
void Try(const Call& call) {
  waste_error error = {};
  error.struct_size = sizeof error;
  if (call(&error) < 0) throw std::runtime_error(error.message);
}

struct Options {
  std::string path;
  int64_t budget = 0;
  int64_t context = 0;
  int32_t threads = 0;
  int64_t warm = 256;
  int64_t tokens = 16;
  double seconds = 0;  // 0: no limit
  std::vector<std::string> texts;
};

class ContextBench {
 public:
  explicit ContextBench(const Options& options) : options_(options), model_(Open(options)) {
    info_.struct_size = sizeof info_;
    Try([&](waste_error* error) { return waste_model_info(model_.get(), &info_, error); });
    waste_session* session = nullptr;
    Try([&](waste_error* error) {
      return waste_session_create(model_.get(), nullptr, &session, error);
    });
    session_.reset(session);
    logits_.resize(static_cast<size_t>(info_.vocab_size));
  }

  Json Run() {
    if (options_.warm > 0) SecondsOf([&] { Read(options_.warm); });
    for (const std::string& text : options_.texts) {
      Try([&](waste_error* error) { return waste_session_reset(session_.get(), error); });
      position_ = 0;
      for (const std::string& stop : CLI::detail::split(text, ',')) {
        const int64_t end = std::stoll(stop);
        if (end <= position_ || end + options_.tokens > info_.context || !HasTimeFor(end)) {
          std::fprintf(stderr, "  position %lld is left out\n", static_cast<long long>(end));
          left_out_.push_back(end);
          break;
        }
        TimePrefill(end);
        TimeDecode();
      }
    }
    return Result();
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::unique_ptr<waste_model, Free> Open(const Options& options) {
    waste_open_options open = {};
    open.struct_size = sizeof open;
    open.budget_bytes = options.budget;
    open.context = options.context;
    open.threads = options.threads;
    waste_model* model = nullptr;
    Try([&](waste_error* error) {
      return waste_open(options.path.data(), std::ssize(options.path), &open, &model, error);
    });
    return std::unique_ptr<waste_model, Free>(model);
  }

  template <typename Work>
  static double SecondsOf(const Work& work) {
    const Clock::time_point start = Clock::now();
    work();
    return std::max(std::chrono::duration<double>(Clock::now() - start).count(), 1e-9);
  }

  void Eval(const std::vector<int32_t>& tokens) {
    Try([&](waste_error* error) {
      return waste_eval(session_.get(), tokens.data(), std::ssize(tokens), logits_.data(),
                        std::ssize(logits_), error);
    });
    position_ += std::ssize(tokens);
  }

  void Read(int64_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t& token : tokens)
      token = static_cast<int32_t>(random_() % static_cast<uint32_t>(info_.vocab_size));
    Eval(tokens);
  }

  // As long a token as the last reading took; before one there is time.
  bool HasTimeFor(int64_t end) const {
    if (options_.seconds == 0) return true;
    const std::chrono::duration<double> so_far = Clock::now() - start_;
    return so_far.count() + seconds_token_ * static_cast<double>(end - position_) <
           options_.seconds;
  }

  waste_stats Stats() const {
    waste_stats stats = {};
    stats.struct_size = sizeof stats;
    Try([&](waste_error* error) { return waste_model_stats(model_.get(), &stats, error); });
    return stats;
  }

  void TimePrefill(int64_t end) {
    const int64_t begin = position_;
    const waste_stats before = Stats();
    const double seconds = SecondsOf([&] { Read(end - begin); });
    seconds_token_ = seconds / static_cast<double>(end - begin);
    prefill_.push_back({{"begin", begin},
                        {"end", end},
                        {"seconds", seconds},
                        {"experts_missed", Stats().experts_missed - before.experts_missed}});
    std::fprintf(stderr, "  read %lld to %lld: %.1f s, %.1f tok/s\n", static_cast<long long>(begin),
                 static_cast<long long>(end), seconds, 1 / seconds_token_);
  }

  void TimeDecode() {
    const int64_t begin = position_;
    const waste_stats before = Stats();
    std::vector<double> seconds;
    for (int64_t i = 0; i < options_.tokens; ++i)
      seconds.push_back(SecondsOf([&] {
        const auto likeliest = std::max_element(logits_.begin(), logits_.end());
        Eval({static_cast<int32_t>(likeliest - logits_.begin())});
      }));
    double sum = 0;
    for (const double one : seconds) sum += one;
    decode_.push_back({{"begin", begin},
                       {"seconds", seconds},
                       {"experts_missed", Stats().experts_missed - before.experts_missed}});
    std::fprintf(stderr, "  wrote %zu at %lld: %.1f tok/s\n", seconds.size(),
                 static_cast<long long>(begin), static_cast<double>(seconds.size()) / sum);
  }

  Json Result() const {
    return {{"threads", info_.threads},
            {"budget_bytes", info_.budget_bytes},
            {"context", info_.context},
            {"cache_slots", info_.cache_slots},
            {"token_flops", info_.token_flops},
            {"peak_rss_bytes", Stats().peak_rss_bytes},
            {"prefill", prefill_},
            {"decode", decode_},
            {"left_out", left_out_}};
  }

  const Options options_;
  const Clock::time_point start_ = Clock::now();
  const std::unique_ptr<waste_model, Free> model_;
  std::unique_ptr<waste_session, Free> session_;
  waste_info info_ = {};
  std::mt19937 random_{7};
  std::vector<float> logits_;
  int64_t position_ = 0;
  double seconds_token_ = 0;
  Json prefill_ = Json::array(), decode_ = Json::array(), left_out_ = Json::array();
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tokens a second along one text.", "context_bench");
  Options options;
  app.add_option("model", options.path, "a container")->required();
  app.add_option("--text", options.texts, "positions to stop and write at, such as 2048,4096")
      ->required();
  app.add_option("--tokens", options.tokens, "tokens to write at each stop [16]");
  app.add_option("--warm", options.warm, "tokens to read before all, not counted [256]");
  app.add_option("--budget", options.budget, "bytes of memory [automatic]");
  app.add_option("--context", options.context, "positions [the model's, at most 8192]");
  app.add_option("--threads", options.threads, "[all]");
  app.add_option("--seconds", options.seconds,
                 "leave out what would end later than this, by the speed so far [no limit]");
  CLI11_PARSE(app, argc, argv);
  try {
    std::puts(ContextBench(options).Run().dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "context_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
