// SPDX-License-Identifier: Apache-2.0

#include "bench_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "drives.h"
#include "limits.h"
#include "machine.h"
#include "progress.h"
#include "sizes.h"
#include "token_text.h"

namespace waste_cli {
namespace {

constexpr const char* kText =
    "The library by the river opens at nine. On its shelves stand atlases, novels and the letters "
    "of people who once lived here; a clock, older than the house, strikes every hour. ";

// Of the experts that were used; null if none was.
nlohmann::ordered_json HitRate(int64_t hits, int64_t misses) {
  if (hits + misses == 0) return nullptr;
  return static_cast<double>(hits) / static_cast<double>(hits + misses);
}

// One phase over all repeats.
struct Phase {
  int64_t tokens = 0;
  std::vector<double> speeds;                     // tokens a second, one a repeat
  std::vector<nlohmann::ordered_json> hit_rates;  // one a repeat
  waste_stats work = {};                          // sums over the repeats
  double seconds_all = 0;

  void Add(double seconds, const waste_stats& before, const waste_stats& after) {
    seconds_all += seconds;
    speeds.push_back(static_cast<double>(tokens) / std::max(seconds, 1e-9));
    hit_rates.push_back(HitRate(after.experts_hit - before.experts_hit,
                                after.experts_missed - before.experts_missed));
    for (const Counter& counter : kCounters)
      work.*counter.value += after.*counter.value - before.*counter.value;
  }
  int64_t uses() const { return work.experts_hit + work.experts_missed; }
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

nlohmann::ordered_json ToJson(const Phase& phase) {
  const auto [slowest, fastest] = std::minmax_element(phase.speeds.begin(), phase.speeds.end());
  nlohmann::ordered_json object = {
      {"tokens", phase.tokens},
      {"tok_s", MedianOf(phase.speeds)},
      {"tok_s_min", *slowest},
      {"tok_s_max", *fastest},
      {"tok_s_all", phase.speeds},
      {"hit_rate", HitRate(phase.work.experts_hit, phase.work.experts_missed)},
      {"hit_rate_all", phase.hit_rates}};
  for (const Counter& counter : kCounters) object[counter.key] = phase.work.*counter.value;
  object["seconds"] = phase.seconds_all;
  return object;
}

// The share of `limit` that was reached; 0 where there is no limit.
double ShareOf(double value, double limit) { return limit > 0 ? value / limit : 0; }

std::string NameOf(const Model& model) {
  std::string name(256, '\0');
  const int64_t size = Try([&](waste_error* error) {
    return waste_model_name(model.get(), name.data(), std::ssize(name), error);
  });
  name.resize(static_cast<size_t>(std::min(size, std::ssize(name))));
  return name;
}

// The day, in UTC.
std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : path_(options.model.path),
        model_(OpenModel(options.model)),
        info_(InfoOf(model_)),
        repeats_(options.repeats) {
    const auto or_default = [](int64_t given, int64_t otherwise) {
      return given > 0 ? given : std::max<int64_t>(otherwise, 1);
    };
    prefill_.tokens = or_default(options.prompt_tokens, std::min<int64_t>(256, info_.context / 2));
    decode_.tokens = or_default(options.decode_tokens, std::min<int64_t>(64, info_.context / 4));
    session_ = Make<waste_session>([&](waste_session** out, waste_error* error) {
      return waste_session_create(model_.get(), nullptr, out, error);
    });
    const std::vector<int32_t> text = Tokenize(model_, kText, false);
    if (text.empty()) throw Failure("UNSUPPORTED", "the model has no tokens for ordinary text");
    for (int64_t i = 0; i < prefill_.tokens; ++i)
      prompt_.push_back(text[static_cast<size_t>(i) % text.size()]);
    logits_.resize(static_cast<size_t>(info_.vocab_size));
  }

  void Measure() {
    ProgressBar bar("Measuring", Unit::kPieces);
    for (int32_t repeat = 0; repeat <= repeats_; ++repeat) {
      bar.Show(repeat, repeats_ + 1);
      Try([&](waste_error* error) { return waste_session_reset(session_.get(), error); });
      Time(prefill_, repeat > 0, [&] { Eval(prompt_); });
      Time(decode_, repeat > 0, [&] {
        for (int64_t i = 0; i < decode_.tokens; ++i) Eval({Likeliest()});
      });
    }
    // Measuring the limits takes memory of its own, which is not the model's.
    peak_rss_bytes_ = StatsOf(model_).peak_rss_bytes;
    memory_limit_ = MemoryLimit(info_.threads);
    fma_limit_ = FmaLimit(info_.threads, info_.isa);
    drive_ = MeasureDrives(path_, info_.expert_bytes, kDriveReaders).all;
  }

  nlohmann::ordered_json Result() const {
    const double decode = MedianOf(decode_.speeds), prefill = MedianOf(prefill_.speeds);
    const double prefill_limit = PerSecond(fma_limit_, static_cast<double>(info_.token_flops));
    const double disk = static_cast<double>(decode_.work.bytes_read) / decode_.seconds_all;
    const double memory = decode * DecodeTokenBytes();
    return {{"path", path_},
            {"model", NameOf(model_)},
            {"cpu", ProcessorName()},
            {"date", Today()},
            {"decode_tok_s", decode},
            {"decode_limit_tok_s", DecodeLimit()},
            {"decode_share", ShareOf(decode, DecodeLimit())},
            {"prefill_tok_s", prefill},
            {"prefill_limit_tok_s", prefill_limit},
            {"prefill_share", ShareOf(prefill, prefill_limit)},
            {"disk_bytes_s", disk},
            {"disk_limit_bytes_s", drive_.bytes_s},
            {"disk_share", ShareOf(disk, drive_.bytes_s)},
            {"memory_bytes_s", memory},
            {"memory_limit_bytes_s", memory_limit_},
            {"memory_share", ShareOf(memory, memory_limit_)},
            {"fma_limit_flops", fma_limit_},
            {"experts_hit", decode_.work.experts_hit},
            {"experts_missed", decode_.work.experts_missed},
            {"peak_rss_bytes", peak_rss_bytes_},
            {"budget_bytes", info_.budget_bytes},
            {"isa", IsaName(info_.isa)},
            {"threads", info_.threads},
            {"context", info_.context},
            {"direct_io", info_.direct_io != 0},
            {"read_lanes", info_.read_lanes},
            {"repeats", repeats_},
            {"prefill", ToJson(prefill_)},
            {"decode", ToJson(decode_)}};
  }

 private:
  // How often a second `amount` goes into `limit`; 0 if nothing of it was needed.
  static double PerSecond(double limit, double amount) { return amount > 0 ? limit / amount : 0; }

  double DecodedTokens() const { return static_cast<double>(decode_.tokens) * repeats_; }

  // What a token reads from memory: the trunk and its experts, hit or missed.
  double DecodeTokenBytes() const {
    return static_cast<double>(info_.token_trunk_bytes) +
           static_cast<double>(decode_.uses()) / DecodedTokens() *
               static_cast<double>(info_.expert_bytes);
  }

  // Of the decode as it was: with the experts that hit and those that missed. What was read on a
  // guess and not needed does not make the limit lower.
  double DecodeLimit() const {
    const double memory = PerSecond(memory_limit_, DecodeTokenBytes());
    const auto missed_bytes = static_cast<double>(decode_.work.experts_missed * info_.expert_bytes);
    const double drive = PerSecond(drive_.bytes_s, missed_bytes / DecodedTokens());
    return drive > 0 ? std::min(memory, drive) : memory;
  }

  template <typename Work>
  void Time(Phase& phase, bool counts, const Work& work) {
    const waste_stats before = StatsOf(model_);
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (counts) phase.Add(seconds.count(), before, StatsOf(model_));
  }

  void Eval(const std::vector<int32_t>& tokens) {
    Try([&](waste_error* error) {
      return waste_eval(session_.get(), tokens.data(), std::ssize(tokens), logits_.data(),
                        std::ssize(logits_), error);
    });
  }

  int32_t Likeliest() const {
    return static_cast<int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
  }

  const std::string path_;
  const Model model_;
  const waste_info info_;
  const int32_t repeats_;
  Session session_;
  std::vector<int32_t> prompt_;
  std::vector<float> logits_;
  Phase prefill_;
  Phase decode_;
  int64_t peak_rss_bytes_ = 0;
  double memory_limit_ = 0;
  double fma_limit_ = 0;
  DriveLimit drive_;
};

}  // namespace

std::string CounterText(const Counter& counter, int64_t value) {
  switch (counter.unit) {
    case CounterUnit::kBytes:
      return SizeText(value);
    case CounterUnit::kMicros:
      return FigureText(static_cast<double>(value) / 1e6) + " s";
    case CounterUnit::kCount:
      break;
  }
  return std::to_string(value);
}

std::string FigureText(double value) {
  char text[64];
  const int decimals = std::fabs(value) < 10 ? 2 : std::fabs(value) < 100 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string PercentText(double share) {
  char text[64];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

nlohmann::ordered_json RunBench(const BenchOptions& options) {
  Bench bench(options);
  bench.Measure();
  return bench.Result();
}

}  // namespace waste_cli
