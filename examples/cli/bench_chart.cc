// SPDX-License-Identifier: Apache-2.0

#include "bench_chart.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench_run.h"
#include "sizes.h"
#include "svg_chart.h"

namespace waste_cli {
namespace {

using Json = nlohmann::ordered_json;

double Number(const Json& object, const std::string& key) { return object[key].get<double>(); }
std::string Text(const Json& object, const char* key) { return object[key].get<std::string>(); }
std::string Size(const Json& object, const char* key) {
  return SizeText(object[key].get<int64_t>());
}

// "mini.waste (kimi-k3)": the folder without those that it lies in, and the architecture.
std::string Title(const Json& result) {
  std::string path = Text(result, "path");
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1) + " (" + Text(result, "model") + ")";
}

std::vector<std::string> Subtitles(const Json& result) {
  const auto& prefill = result["prefill"];
  const auto& decode = result["decode"];
  return {Text(result, "cpu") + " · " + Text(result, "isa") + " · " +
              std::to_string(result["threads"].get<int>()) + " threads · reads " +
              (result["direct_io"].get<bool>() ? "direct" : "through the page cache"),
          "budget " + Size(result, "budget_bytes") + " · peak RSS " +
              Size(result, "peak_rss_bytes") + " · prompt of " +
              std::to_string(prefill["tokens"].get<int64_t>()) + " tokens, " +
              std::to_string(decode["tokens"].get<int64_t>()) + " written · " +
              std::to_string(result["repeats"].get<int>()) + " repeats · " + Text(result, "date")};
}

// "12.3 tok/s, 32 % of 39.1"
std::string ReachedText(double value, double limit, const std::string& unit) {
  if (limit <= 0) return FigureText(value) + " " + unit;
  return FigureText(value) + " " + unit + ", " + PercentText(value / limit) + " of " +
         FigureText(limit);
}

void AddSpeed(SvgChart& chart, const Json& result, const std::string& name,
              const std::string& title) {
  const double speed = Number(result, name + "_tok_s");
  const double limit = Number(result, name + "_limit_tok_s");
  chart.AddBars(title,
                {{.label = name,
                  .value = speed,
                  .limit = limit,
                  .points = result[name]["tok_s_all"].get<std::vector<double>>(),
                  .note = ReachedText(speed, limit, "tok/s")}},
                false);
}

void AddShares(SvgChart& chart, const Json& result) {
  const auto bar = [&](const char* label, const char* share, double value, double limit,
                       const char* unit) {
    return ChartBar{.label = label,
                    .value = Number(result, share),
                    .limit = limit > 0 ? 1.0 : 0.0,
                    .points = {},
                    .note = limit > 0 ? ReachedText(value, limit, unit) : "not needed"};
  };
  const double flops = ArithmeticLimit(result) / 1e9;
  chart.AddBars("Share of each limit of the machine",
                {bar("drive, decode", "disk_share", Number(result, "disk_bytes_s") / 1e9,
                     Number(result, "disk_limit_bytes_s") / 1e9, "GB/s"),
                 bar("memory, decode", "memory_share", Number(result, "memory_bytes_s") / 1e9,
                     Number(result, "memory_limit_bytes_s") / 1e9, "GB/s"),
                 bar("arithmetic, prefill", "prefill_share",
                     Number(result, "prefill_share") * flops, flops, "GFLOP/s")},
                true);
}

// A repeat that used no experts has no column.
ChartColumns HitRates(const Json& result, const char* name) {
  const Json& phase = result[name];
  std::vector<double> shares;
  for (const Json& rate : phase["hit_rate_all"])
    if (rate.is_number()) shares.push_back(rate.get<double>());
  if (shares.empty()) return {.label = name, .shares = {}, .note = "no experts used"};
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return {.label = name,
          .shares = shares,
          .note = PercentText(Number(phase, "hit_rate")) + " (" + PercentText(*least) + " to " +
                  PercentText(*most) + ")"};
}

std::vector<std::vector<std::string>> Counters(const Json& result) {
  std::vector<std::vector<std::string>> rows = {{"", "prefill", "decode"}};
  for (const Counter& counter : kCounters)
    rows.push_back({counter.label,
                    CounterText(counter, result["prefill"][counter.key].get<int64_t>()),
                    CounterText(counter, result["decode"][counter.key].get<int64_t>())});
  return rows;
}

}  // namespace

std::string BenchChart(const Json& raw) {
  // Names of models and processors need be no UTF-8; what --json would replace is replaced here.
  const Json result =
      Json::parse(raw.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  SvgChart chart("waste bench: " + Title(result), Subtitles(result));
  chart.AddLegend("reached, median", "limit, measured in the same run", "one repeat");
  AddSpeed(chart, result, "decode", "Decode, tokens a second");
  AddSpeed(chart, result, "prefill", "Prefill, tokens a second");
  AddShares(chart, result);
  chart.AddColumns("Experts that were in memory when they were needed",
                   {HitRates(result, "decode"), HitRates(result, "prefill")},
                   "one column a repeat");
  chart.AddTable("Sums over the repeats", Counters(result));
  return chart.Text();
}

}  // namespace waste_cli
