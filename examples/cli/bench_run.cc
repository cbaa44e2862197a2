// SPDX-License-Identifier: Apache-2.0

#include "bench_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench_phase.h"
#include "bench_sessions.h"
#include "drive_limit.h"
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
        exact_(options.model.exact),
        repeats_(options.repeats),
        sessions_(options.sessions),
        writer_(model_) {
    const auto or_default = [](int64_t given, int64_t otherwise) {
      return given > 0 ? given : std::max<int64_t>(otherwise, 1);
    };
    prefill_.tokens = or_default(options.prompt_tokens, std::min<int64_t>(256, info_.context / 2));
    decode_.tokens = or_default(options.decode_tokens, std::min<int64_t>(64, info_.context / 4));
    text_ = Tokenize(model_, kText, false);
    if (text_.empty()) throw Failure("UNSUPPORTED", "the model has no tokens for ordinary text");
    for (int64_t i = 0; i < prefill_.tokens; ++i)
      prompt_.push_back(text_[static_cast<size_t>(i) % text_.size()]);
  }

  void Measure() {
    ProgressBar bar("Measuring", Unit::kPieces);
    const int32_t rounds = repeats_ + 1;
    const int32_t all_rounds = sessions_ > 1 ? 2 * rounds : rounds;
    for (int32_t round = 0; round < rounds; ++round) {
      bar.Show(round, all_rounds);
      writer_.Reset();
      Time(prefill_, round > 0, [&] { writer_.Eval(prompt_); });
      Time(decode_, round > 0, [&] { writer_.Write(decode_.tokens); });
    }
    // Made after the one alone was measured: their memory is taken from the cache.
    if (sessions_ > 1) together_.emplace(model_, sessions_, text_, decode_.tokens);
    for (int32_t round = 0; together_ && round < rounds; ++round) {
      bar.Show(rounds + round, all_rounds);
      together_->Repeat(round > 0);
    }
    // Measuring the limits takes memory of its own, which is not the model's.
    peak_rss_bytes_ = StatsOf(model_).peak_rss_bytes;
    memory_limit_ = MemoryLimit(info_.threads);
    fma_limit_ = FmaLimit(info_.threads, info_.isa);
    if (!exact_) word_limit_ = WordLimit(info_.threads, info_.isa);
    drive_ = FastestDrive();
  }

  nlohmann::ordered_json Result() const {
    const double decode = MedianOf(decode_.speeds), prefill = MedianOf(prefill_.speeds);
    const double prefill_limit =
        PerSecond(std::max(fma_limit_, word_limit_), static_cast<double>(info_.token_flops));
    const double disk = static_cast<double>(decode_.work.bytes_read) / decode_.seconds_all;
    const double memory = decode * DecodeTokenBytes();
    nlohmann::ordered_json result = {{"path", path_},
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
                                     {"word_limit_ops", word_limit_},
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
    if (together_) result["together"] = together_->Result(decode);
    return result;
  }

 private:
  // Some drives read less with more at once: as many as the model reads, or kDriveReaders.
  DriveLimit FastestDrive() const {
    const DriveLimit many = MeasureDrives(path_, info_.expert_bytes, kDriveReaders).all;
    if (info_.read_lanes <= 0 || info_.read_lanes == kDriveReaders) return many;
    const DriveLimit own = MeasureDrives(path_, info_.expert_bytes, info_.read_lanes).all;
    return own.bytes_s > many.bytes_s ? own : many;
  }

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

  const std::string path_;
  const Model model_;
  const waste_info info_;
  const bool exact_;
  const int32_t repeats_;
  const int32_t sessions_;
  Writer writer_;
  std::vector<int32_t> text_;
  std::vector<int32_t> prompt_;
  Phase prefill_;
  Phase decode_;
  std::optional<SessionsBench> together_;
  int64_t peak_rss_bytes_ = 0;
  double memory_limit_ = 0;
  double fma_limit_ = 0;
  double word_limit_ = 0;
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

double ArithmeticLimit(const nlohmann::ordered_json& result) {
  return std::max(result["fma_limit_flops"].get<double>(), result["word_limit_ops"].get<double>());
}

}  // namespace waste_cli
