// SPDX-License-Identifier: Apache-2.0
//
// The picture of a `waste bench`: speeds and what they reached of the machine's limits, each repeat
// as a dot, the share of experts that were in memory, and the counters. Made from the JSON of the
// run and nothing else, so that its figures are those of the run. Pure.

#ifndef WASTE_EXAMPLES_CLI_BENCH_CHART_H_
#define WASTE_EXAMPLES_CLI_BENCH_CHART_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace waste_cli {

// An SVG document; `result` is that of RunBench.
std::string BenchChart(const nlohmann::ordered_json& result);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_BENCH_CHART_H_
