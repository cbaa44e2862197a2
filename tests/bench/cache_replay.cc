// SPDX-License-Identifier: Apache-2.0
//
// cache_replay TRACE.jsonl: which share of expert uses a cache of some sizes serves, when the uses
// are those of a recorded run. A line of the trace is one token, {"tok": n, "layers": [[expert,
// ...], ...]}. Our policy is the cache's own SlotTable; beside it stand least recently used and the
// best that one who knows the future could do. Slots are those that keep experts; the ones that a
// layer's reads are staged in come on top, as in a memory plan.

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <limits>
#include <list>
#include <nlohmann/json.hpp>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay_plot.h"
#include "stream/slot_table.h"

namespace waste {
namespace {

struct Trace {
  std::vector<std::vector<std::vector<int32_t>>> tokens;  // [token][layer][expert]
  int32_t layers = 0;
  int32_t experts = 0;  // a layer
  int64_t uses = 0;
  int64_t staged = 0;  // most experts of one layer of one token

  int64_t all() const { return int64_t{layers} * experts; }
  int32_t Number(size_t layer, int32_t expert) const {
    return static_cast<int32_t>(layer) * experts + expert;
  }
};

Trace ReadTrace(const std::string& path, int32_t experts) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  Trace trace;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      trace.tokens.push_back(nlohmann::json::parse(line).at("layers"));
    } catch (const nlohmann::json::exception& error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
    trace.layers = std::max(trace.layers, static_cast<int32_t>(trace.tokens.back().size()));
    for (const auto& layer : trace.tokens.back()) {
      trace.uses += static_cast<int64_t>(layer.size());
      trace.staged = std::max(trace.staged, static_cast<int64_t>(layer.size()));
      for (const int32_t expert : layer) {
        if (expert < 0)
          throw std::runtime_error(path + ":" + std::to_string(number) + ": an expert below 0");
        trace.experts = std::max(trace.experts, expert + 1);
      }
    }
  }
  if (experts > 0 && experts < trace.experts)
    throw std::runtime_error("the trace names expert " + std::to_string(trace.experts - 1) +
                             ", which is not below --experts");
  if (experts > 0) trace.experts = experts;
  if (trace.uses == 0) throw std::runtime_error(path + ": no uses of experts");
  return trace;
}

// All experts of a layer are leased together, as the forward pass does.
double Ours(const Trace& trace, int64_t slots) {
  SlotTable table(trace.all(), slots + trace.staged);
  int64_t hits = 0;
  std::vector<int32_t> leased;
  for (const auto& token : trace.tokens) {
    table.BeginStep();
    for (size_t layer = 0; layer < token.size(); ++layer) {
      leased.clear();
      std::vector<int32_t> missing;
      for (const int32_t expert : token[layer]) {
        const int32_t number = trace.Number(layer, expert);
        const int32_t slot = table.SlotOf(number);
        if (slot != SlotTable::kNone) {
          table.Lease(slot);
          leased.push_back(slot);
          ++hits;
        } else {
          missing.push_back(number);
        }
        table.Count(number);
      }
      for (const int32_t number : missing) {
        leased.push_back(table.Take());
        table.Fill(leased.back(), number);
      }
      for (const int32_t slot : leased) table.Release(slot);
    }
  }
  return static_cast<double>(hits) / static_cast<double>(trace.uses);
}

std::vector<int32_t> Flat(const Trace& trace) {
  std::vector<int32_t> uses;
  for (const auto& token : trace.tokens)
    for (size_t layer = 0; layer < token.size(); ++layer)
      for (const int32_t expert : token[layer]) uses.push_back(trace.Number(layer, expert));
  return uses;
}

double LeastRecentlyUsed(const Trace& trace, int64_t slots) {
  std::list<int32_t> recent;
  std::unordered_map<int32_t, std::list<int32_t>::iterator> there;
  int64_t hits = 0;
  for (const int32_t number : Flat(trace)) {
    if (const auto found = there.find(number); found != there.end()) {
      ++hits;
      recent.splice(recent.begin(), recent, found->second);
      continue;
    }
    if (static_cast<int64_t>(there.size()) == slots) {
      there.erase(recent.back());
      recent.pop_back();
    }
    if (slots == 0) continue;
    recent.push_front(number);
    there[number] = recent.begin();
  }
  return static_cast<double>(hits) / static_cast<double>(trace.uses);
}

// Gives up what is needed latest, or does not keep the new one if that is needed later still.
double Optimum(const Trace& trace, int64_t slots) {
  const std::vector<int32_t> uses = Flat(trace);
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> next(uses.size());
  std::unordered_map<int32_t, int64_t> seen;
  for (auto i = static_cast<int64_t>(uses.size()) - 1; i >= 0; --i) {
    const auto found = seen.find(uses[i]);
    next[i] = found == seen.end() ? kNever : found->second;
    seen[uses[i]] = i;
  }
  std::unordered_map<int32_t, int64_t> there;  // number -> its next use
  std::priority_queue<std::pair<int64_t, int32_t>> latest;
  int64_t hits = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto found = there.find(uses[i]);
    if (found != there.end()) ++hits;
    if (found == there.end() && static_cast<int64_t>(there.size()) >= slots) {
      while (!latest.empty()) {  // what the queue says of experts that were used since is old
        const auto held = there.find(latest.top().second);
        if (held != there.end() && held->second == latest.top().first) break;
        latest.pop();
      }
      if (latest.empty() || latest.top().first <= next[i]) continue;
      there.erase(latest.top().second);
      latest.pop();
    }
    there[uses[i]] = next[i];
    latest.emplace(next[i], uses[i]);
  }
  return static_cast<double>(hits) / static_cast<double>(trace.uses);
}

void Run(const std::string& path, int32_t experts, bool json, const std::string& plot) {
  const Trace trace = ReadTrace(path, experts);
  if (!json)
    std::cout << trace.tokens.size() << " tokens, " << trace.layers << " layers of "
              << trace.experts << " experts, " << trace.uses << " uses\n"
              << "share   slots     lru    ours  optimum\n";
  std::vector<ReplayPoint> points;
  for (const double share : {0.015, 0.03, 0.06, 0.12, 0.24, 0.48}) {
    const auto slots = static_cast<int64_t>(share * static_cast<double>(trace.all()));
    const ReplayPoint point{share, LeastRecentlyUsed(trace, slots), Ours(trace, slots),
                            Optimum(trace, slots)};
    points.push_back(point);
    if (json)
      std::cout << nlohmann::ordered_json{{"share", share},
                                          {"lru", point.lru},
                                          {"ours", point.ours},
                                          {"optimum", point.optimum}}
                       .dump()
                << "\n";
    else
      std::printf("%5.3f %7lld  %6.4f  %6.4f   %6.4f\n", share, static_cast<long long>(slots),
                  point.lru, point.ours, point.optimum);
  }
  if (!plot.empty()) WriteReplayPlot(plot, points);
}

}  // namespace
}  // namespace waste

int main(int argc, char** argv) {
  CLI::App app("Replays a routing trace through the expert cache's policy.", "cache_replay");
  std::string trace, plot;
  int32_t experts = 0;
  bool json = false;
  app.add_option("trace", trace, "JSON lines: {\"tok\": n, \"layers\": [[expert, ...], ...]}")
      ->required();
  app.add_option("--experts", experts, "experts of a layer [one more than the trace names]");
  app.add_flag("--json", json, "one JSON object a line");
  app.add_option("--plot", plot, "write the curve to this SVG file");
  CLI11_PARSE(app, argc, argv);
  try {
    waste::Run(trace, experts, json, plot);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
