// SPDX-License-Identifier: Apache-2.0
//
// `waste bench`: tokens a second, of reading a prompt and of writing an answer.

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "atomic_file.h"
#include "bench_chart.h"
#include "bench_run.h"
#include "command.h"
#include "output.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
A prompt of ordinary text is read in one go (prefill), then tokens are written one by one, each
drawn from the eight likeliest (decode), so that a text does not go in circles. The first,
uncounted, repeat warms the cache. Told are the median of the repeats and the slowest and fastest
one, and what the cache and the disk did meanwhile. Beside them stand the machine's limits,
measured in the same run: reading memory, multiplying, and reading expert records from the drive.
The decode limit is the slower of reading a token's weights from memory and its missing experts
from the drive; the prefill limit is the multiplications alone.
With --sessions N, N sessions then write at once, a thread each, after a prompt of at most 32
tokens: told are the tokens of all a second, beside those of one alone, and those of each. Their
memory is taken from the cache: name a budget that holds both.
--svg draws the same figures: bars before the band of their limit, each repeat as a dot.

Examples:
  waste bench model.waste --budget 16G --prompt-tokens 512 --tokens 64
  waste bench model.waste --sessions 8 --context 1024
  waste bench model.waste --svg bench.svg --json
JSON: decode_tok_s, decode_limit_tok_s, prefill_tok_s, prefill_limit_tok_s, disk_bytes_s (of the
      decode), disk_limit_bytes_s, memory_bytes_s (of the decode), memory_limit_bytes_s,
      fma_limit_flops, word_limit_ops (products of words of 16 bits, which read prompts where the
      processor has them; else 0); decode_share, prefill_share, disk_share, memory_share (of these
      limits, 0 to 1); experts_hit, experts_missed (of the decode), peak_rss_bytes, budget_bytes,
      isa, threads, context, direct_io, repeats, path, model, cpu, date; prefill and decode, each
      with tokens, tok_s (the median), tok_s_min, tok_s_max, tok_s_all, hit_rate (null if no expert
      was used), hit_rate_all (one a repeat), experts_hit, experts_missed, experts_foreseen (of
      those missed), bytes_read, speculative_bytes (of those read, on a guess), read_stalls,
      read_us, seconds; with --sessions together: sessions, gain (their tok_s over decode_tok_s),
      session_tok_s (of each), and what decode has, for all of them)";

// A row of the table: what it is, and its figure in prefill and in decode.
void WriteRow(const std::string& label, const std::string& prefill, const std::string& decode) {
  char line[200];
  std::snprintf(line, sizeof line, "%-20s %14s %14s\n", label.c_str(), prefill.c_str(),
                decode.c_str());
  Write(line);
}

void WritePhases(const nlohmann::ordered_json& result) {
  const auto& prefill = result["prefill"];
  const auto& decode = result["decode"];
  const auto figures = [&](const char* label, const char* key) {
    WriteRow(label, FigureText(prefill[key].get<double>()), FigureText(decode[key].get<double>()));
  };
  const auto tokens = [&](const nlohmann::ordered_json& phase) {
    return std::to_string(phase["tokens"].get<int64_t>()) + " x " +
           std::to_string(result["repeats"].get<int32_t>());
  };
  const auto percent = [](const nlohmann::ordered_json& share) {
    return share.is_number() ? PercentText(share.get<double>()) : std::string("-");
  };
  WriteRow("", "prefill", "decode");
  WriteRow("tokens", tokens(prefill), tokens(decode));
  figures("tok/s, median", "tok_s");
  figures("  slowest", "tok_s_min");
  figures("  fastest", "tok_s_max");
  WriteRow("  limit", FigureText(result["prefill_limit_tok_s"].get<double>()),
           FigureText(result["decode_limit_tok_s"].get<double>()));
  WriteRow("  reached of it", percent(result["prefill_share"]), percent(result["decode_share"]));
  WriteRow("hit rate", percent(prefill["hit_rate"]), percent(decode["hit_rate"]));
  for (const Counter& counter : kCounters)
    WriteRow(counter.label, CounterText(counter, prefill[counter.key].get<int64_t>()),
             CounterText(counter, decode[counter.key].get<int64_t>()));
}

void WriteTogether(const nlohmann::ordered_json& together) {
  const auto line = [](const char* label, const std::string& figures) {
    char text[200];
    std::snprintf(text, sizeof text, "  %-20s %s\n", label, figures.c_str());
    Write(text);
  };
  const auto figure = [&](const char* key) { return FigureText(together[key].get<double>()); };
  const auto each = together["session_tok_s"].get<std::vector<double>>();
  const auto [slowest, fastest] = std::minmax_element(each.begin(), each.end());
  Write("\n");
  Write(std::to_string(each.size()) + " sessions at once, decode\n");
  line("tok/s, median", figure("tok_s") + ", " + figure("gain") + " times one alone");
  line("slowest to fastest", figure("tok_s_min") + " to " + figure("tok_s_max"));
  line("each session", FigureText(*slowest) + " to " + FigureText(*fastest));
  if (together["hit_rate"].is_number())
    line("hit rate", PercentText(together["hit_rate"].get<double>()));
  for (const Counter& counter : kCounters)
    line(counter.label, CounterText(counter, together[counter.key].get<int64_t>()));
}

void WriteTable(const nlohmann::ordered_json& result) {
  WritePhases(result);
  if (result.contains("together")) WriteTogether(result["together"]);
  const auto figure = [&](const char* key, double unit) {
    return FigureText(result[key].get<double>() / unit);
  };
  const auto percent = [&](const char* key) { return PercentText(result[key].get<double>()); };
  Write("\nlimits of this machine, and what was reached of them\n");
  Write("  drive, decode        " + figure("disk_bytes_s", 1e9) + " of " +
        figure("disk_limit_bytes_s", 1e9) + " GB/s, " + percent("disk_share") + "\n");
  Write("  memory, decode       " + figure("memory_bytes_s", 1e9) + " of " +
        figure("memory_limit_bytes_s", 1e9) + " GB/s, " + percent("memory_share") + "\n");
  const double arithmetic = ArithmeticLimit(result) / 1e9;
  Write("  arithmetic, prefill  " + FigureText(result["prefill_share"].get<double>() * arithmetic) +
        " of " + FigureText(arithmetic) + " GFLOP/s, " + percent("prefill_share") + "\n");
}

// A limit that is exceeded is none; the figures are told as they are, with a reason.
void NoteDoubts(const nlohmann::ordered_json& result) {
  for (const char* key : {"decode_share", "prefill_share", "disk_share", "memory_share"})
    if (result[key].get<double>() > 1) {
      WriteNote(
          "note: more was reached than a limit allows: the machine did something else while the "
          "limit was measured, or the model fits its caches");
      return;
    }
}

int RunBenchCommand(const BenchOptions& options, bool json) {
  if (!options.svg.empty()) CheckWritable(options.svg);
  const nlohmann::ordered_json result = RunBench(options);
  if (!options.svg.empty()) WriteAtomically(options.svg, BenchChart(result));
  if (json) {
    WriteJson(result);
  } else {
    WriteTable(result);
  }
  NoteDoubts(result);
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command =
      AddCommand(app, program, "bench", "Measure tokens a second", kFooter,
                 [options, &program] { return RunBenchCommand(*options, program.json); });
  AddModelOptions(command, options->model);
  AddInteger(command, "--prompt-tokens", options->prompt_tokens,
             "Tokens of the prompt (default: 256, or half the context)", 1);
  AddInteger(command, "--tokens", options->decode_tokens,
             "Tokens to write (default: 64, or a quarter of the context)", 1);
  AddInteger(command, "--repeats", options->repeats, "Repeats that count (default: 5)", 1, 10000);
  AddInteger(command, "--sessions", options->sessions,
             "Sessions that then write at once (default: 1, which measures none)", 1, 64);
  AddText(command, "--svg", options->svg, "Draw the result into this file, replacing it",
          [](const std::string& path) { return path.empty() ? "a file needs a name" : ""; });
}

}  // namespace waste_cli
