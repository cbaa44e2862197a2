// SPDX-License-Identifier: Apache-2.0
//
// `waste bench`: tokens a second, of reading a prompt and of writing an answer.

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "command.h"
#include "limits.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "token_text.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
A prompt of ordinary text is read in one go (prefill), then tokens are written one by one, each the
likeliest (decode). The first, uncounted, repeat warms the cache. Told are the median of the
repeats and the slowest and fastest one, and what the cache and the disk did meanwhile. Beside them
stand the machine's limits, measured in the same run: reading memory, multiplying, and reading
expert records from the drive. The decode limit is the slower of reading a token's weights from
memory and its missing experts from the drive; the prefill limit is the multiplications alone.

Example:
  waste bench model.waste --budget 16G --prompt-tokens 512 --tokens 64
JSON: decode_tok_s, decode_limit_tok_s, prefill_tok_s, prefill_limit_tok_s, disk_bytes_s (of the
      decode), disk_limit_bytes_s, memory_limit_bytes_s, fma_limit_flops, experts_hit,
      experts_missed, peak_rss_bytes, budget_bytes, isa, threads, context, direct_io, repeats;
      prefill and decode, each with tokens, tok_s (the median), tok_s_min, tok_s_max, tok_s_all,
      experts_hit, experts_missed, bytes_read, read_us, seconds)";
constexpr const char* kText =
    "The library by the river opens at nine. On its shelves stand atlases, novels and the letters "
    "of people who once lived here; a clock, older than the house, strikes every hour. ";

struct BenchOptions {
  ModelOptions model;
  int64_t prompt_tokens = 0;
  int64_t decode_tokens = 0;
  int32_t repeats = 5;
};

// One phase over all repeats.
struct Phase {
  int64_t tokens = 0;
  std::vector<double> speeds;  // tokens a second, one a repeat
  waste_stats work = {};       // sums over the repeats
  double seconds_all = 0;

  void Add(double seconds, const waste_stats& before, const waste_stats& after) {
    seconds_all += seconds;
    speeds.push_back(static_cast<double>(tokens) / std::max(seconds, 1e-9));
    work.experts_hit += after.experts_hit - before.experts_hit;
    work.experts_missed += after.experts_missed - before.experts_missed;
    work.bytes_read += after.bytes_read - before.bytes_read;
    work.read_us += after.read_us - before.read_us;
  }
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

nlohmann::ordered_json ToJson(const Phase& phase) {
  const auto [slowest, fastest] = std::minmax_element(phase.speeds.begin(), phase.speeds.end());
  return {{"tokens", phase.tokens},
          {"tok_s", MedianOf(phase.speeds)},
          {"tok_s_min", *slowest},
          {"tok_s_max", *fastest},
          {"tok_s_all", phase.speeds},
          {"experts_hit", phase.work.experts_hit},
          {"experts_missed", phase.work.experts_missed},
          {"bytes_read", phase.work.bytes_read},
          {"read_us", phase.work.read_us},
          {"seconds", phase.seconds_all}};
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
    memory_limit_ = MemoryLimit(info_.threads);
    fma_limit_ = FmaLimit(info_.threads, info_.isa);
    drive_ = MeasureDrive(path_, info_.expert_bytes);
    for (int32_t repeat = 0; repeat <= repeats_; ++repeat) {
      bar.Show(repeat, repeats_ + 1);
      Try([&](waste_error* error) { return waste_session_reset(session_.get(), error); });
      Time(prefill_, repeat > 0, [&] { Eval(prompt_); });
      Time(decode_, repeat > 0, [&] {
        for (int64_t i = 0; i < decode_.tokens; ++i) Eval({Likeliest()});
      });
    }
  }

  nlohmann::ordered_json Result() const {
    return {{"decode_tok_s", MedianOf(decode_.speeds)},
            {"decode_limit_tok_s", DecodeLimit()},
            {"prefill_tok_s", MedianOf(prefill_.speeds)},
            {"prefill_limit_tok_s", PerSecond(fma_limit_, static_cast<double>(info_.token_flops))},
            {"disk_bytes_s", static_cast<double>(decode_.work.bytes_read) / decode_.seconds_all},
            {"disk_limit_bytes_s", drive_.bytes_s},
            {"memory_limit_bytes_s", memory_limit_},
            {"fma_limit_flops", fma_limit_},
            {"experts_hit", decode_.work.experts_hit},
            {"experts_missed", decode_.work.experts_missed},
            {"peak_rss_bytes", StatsOf(model_).peak_rss_bytes},
            {"budget_bytes", info_.budget_bytes},
            {"isa", IsaName(info_.isa)},
            {"threads", info_.threads},
            {"context", info_.context},
            {"direct_io", info_.direct_io != 0},
            {"repeats", repeats_},
            {"prefill", ToJson(prefill_)},
            {"decode", ToJson(decode_)}};
  }

 private:
  // How often a second `amount` goes into `limit`; 0 if nothing of it was needed.
  static double PerSecond(double limit, double amount) { return amount > 0 ? limit / amount : 0; }

  // Of the decode as it was: with the experts that hit and those that missed.
  double DecodeLimit() const {
    const double tokens = static_cast<double>(decode_.tokens) * repeats_;
    const double uses =
        static_cast<double>(decode_.work.experts_hit + decode_.work.experts_missed) / tokens;
    const double memory =
        PerSecond(memory_limit_, static_cast<double>(info_.token_trunk_bytes) +
                                     uses * static_cast<double>(info_.expert_bytes));
    const double drive =
        PerSecond(drive_.bytes_s, static_cast<double>(decode_.work.bytes_read) / tokens);
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
  double memory_limit_ = 0;
  double fma_limit_ = 0;
  DriveLimit drive_;
};

void WriteTable(const nlohmann::ordered_json& result) {
  for (const char* name : {"prefill", "decode"}) {
    const auto& phase = result[name];
    char line[200];
    std::snprintf(line, sizeof line,
                  "%-8s %9.1f tok/s  (%.1f to %.1f)  %lld tokens x %d  %lld hits, %lld misses, "
                  "%lld bytes read\n",
                  name, phase["tok_s"].get<double>(), phase["tok_s_min"].get<double>(),
                  phase["tok_s_max"].get<double>(), phase["tokens"].get<long long>(),
                  result["repeats"].get<int>(), phase["experts_hit"].get<long long>(),
                  phase["experts_missed"].get<long long>(), phase["bytes_read"].get<long long>());
    Write(line);
  }
  const auto number = [&](const char* key) { return result[key].get<double>(); };
  char lines[400];
  std::snprintf(
      lines, sizeof lines,
      "limits   prefill %.1f tok/s (%.0f GFLOP/s), decode %.1f tok/s (memory %.1f GB/s, "
      "drive %.2f GB/s)\nreached  prefill %.0f %%, decode %.0f %%; drive %.2f GB/s\n",
      number("prefill_limit_tok_s"), number("fma_limit_flops") / 1e9, number("decode_limit_tok_s"),
      number("memory_limit_bytes_s") / 1e9, number("disk_limit_bytes_s") / 1e9,
      100 * number("prefill_tok_s") / number("prefill_limit_tok_s"),
      100 * number("decode_tok_s") / number("decode_limit_tok_s"), number("disk_bytes_s") / 1e9);
  Write(lines);
}

}  // namespace

void AddBench(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command =
      AddCommand(app, program, "bench", "Measure tokens a second", kFooter, [options, &program] {
        Bench bench(*options);
        bench.Measure();
        if (program.json) {
          WriteJson(bench.Result());
        } else {
          WriteTable(bench.Result());
        }
        return kExitOk;
      });
  AddModelOptions(command, options->model);
  AddInteger(command, "--prompt-tokens", options->prompt_tokens,
             "Tokens of the prompt (default: 256, or half the context)", 1);
  AddInteger(command, "--tokens", options->decode_tokens,
             "Tokens to write (default: 64, or a quarter of the context)", 1);
  AddInteger(command, "--repeats", options->repeats, "Repeats that count (default: 5)", 1, 10000);
}

}  // namespace waste_cli
