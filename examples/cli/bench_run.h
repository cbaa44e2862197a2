// SPDX-License-Identifier: Apache-2.0
//
// The measuring of `waste bench`: prefill and decode, repeated, with what the library counted
// meanwhile, and the machine's limits in the same run. The result is one JSON object, from which
// table and picture are made, so that all three say the same. Main thread only.

#ifndef WASTE_EXAMPLES_CLI_BENCH_RUN_H_
#define WASTE_EXAMPLES_CLI_BENCH_RUN_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "options.h"

namespace waste_cli {

struct BenchOptions {
  ModelOptions model;
  int64_t prompt_tokens = 0;  // 0: what suits the context
  int64_t decode_tokens = 0;
  int32_t repeats = 5;
  int32_t sessions = 1;  // more: they write at once too
  std::string svg;       // the picture's file; empty: none
};

// What a counter counts, and thereby how it is written.
enum class CounterUnit { kCount, kBytes, kMicros };

// A counter of the library that is told of each phase: in the table, the picture and the JSON. One
// line of kCounters for each.
struct Counter {
  const char* key;
  const char* label;
  CounterUnit unit;
  int64_t waste_stats::*value;
};

inline constexpr Counter kCounters[] = {
    {"experts_hit", "experts hit", CounterUnit::kCount, &waste_stats::experts_hit},
    {"experts_missed", "experts missed", CounterUnit::kCount, &waste_stats::experts_missed},
    {"experts_foreseen", "  foreseen", CounterUnit::kCount, &waste_stats::experts_foreseen},
    {"bytes_read", "read", CounterUnit::kBytes, &waste_stats::bytes_read},
    {"speculative_bytes", "  on a guess", CounterUnit::kBytes, &waste_stats::speculative_bytes},
    {"read_stalls", "stalls", CounterUnit::kCount, &waste_stats::read_stalls},
    {"read_us", "waited for reads", CounterUnit::kMicros, &waste_stats::read_us},
};

std::string CounterText(const Counter& counter, int64_t value);

// A figure with three digits or more: 0.42, 12.3, 1748.
std::string FigureText(double value);

// "32 %", of a share of [0, 1].
std::string PercentText(double share);

nlohmann::ordered_json RunBench(const BenchOptions& options);

// Operations a second that prefill is measured by, of a result: f32, or words where they are used.
double ArithmeticLimit(const nlohmann::ordered_json& result);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_BENCH_RUN_H_
