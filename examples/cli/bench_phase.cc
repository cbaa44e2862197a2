// SPDX-License-Identifier: Apache-2.0

#include "bench_phase.h"

#include <algorithm>

#include "bench_run.h"

namespace waste_cli {
namespace {

// Of the experts that were used; null if none was.
nlohmann::ordered_json HitRate(int64_t hits, int64_t misses) {
  if (hits + misses == 0) return nullptr;
  return static_cast<double>(hits) / static_cast<double>(hits + misses);
}

}  // namespace

void Phase::Add(double seconds, const waste_stats& before, const waste_stats& after) {
  seconds_all += seconds;
  speeds.push_back(static_cast<double>(tokens) / std::max(seconds, 1e-9));
  hit_rates.push_back(HitRate(after.experts_hit - before.experts_hit,
                              after.experts_missed - before.experts_missed));
  for (const Counter& counter : kCounters)
    work.*counter.value += after.*counter.value - before.*counter.value;
}

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

}  // namespace waste_cli
