// SPDX-License-Identifier: Apache-2.0
//
// What `waste bench` keeps of one kind of work: its speed in each repeat, and what the library
// counted meanwhile.

#ifndef WASTE_EXAMPLES_CLI_BENCH_PHASE_H_
#define WASTE_EXAMPLES_CLI_BENCH_PHASE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "waste/waste.h"

namespace waste_cli {

// One phase over all repeats.
struct Phase {
  int64_t tokens = 0;                             // of one repeat
  std::vector<double> speeds;                     // tokens a second, one a repeat
  std::vector<nlohmann::ordered_json> hit_rates;  // one a repeat
  waste_stats work = {};                          // sums over the repeats
  double seconds_all = 0;

  void Add(double seconds, const waste_stats& before, const waste_stats& after);
  int64_t uses() const { return work.experts_hit + work.experts_missed; }
};

nlohmann::ordered_json ToJson(const Phase& phase);

double MedianOf(std::vector<double> values);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_BENCH_PHASE_H_
