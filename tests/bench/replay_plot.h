// SPDX-License-Identifier: Apache-2.0
//
// The curve of cache_replay as an SVG file: share of accesses served over share of experts kept, on
// an axis that doubles from step to step. Header-only; for cache_replay alone.

#ifndef WASTE_TESTS_BENCH_REPLAY_PLOT_H_
#define WASTE_TESTS_BENCH_REPLAY_PLOT_H_

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace waste {

struct ReplayPoint {
  double share = 0;  // of all experts that the cache keeps
  double lru = 0;    // shares of uses that were served
  double ours = 0;
  double optimum = 0;
};

// Throws std::runtime_error if the file cannot be written.
inline void WriteReplayPlot(const std::string& path, const std::vector<ReplayPoint>& points) {
  constexpr double kLeft = 60, kTop = 20, kWidth = 480, kHeight = 300;
  const double first = std::log2(points.front().share), last = std::log2(points.back().share);
  const auto x = [&](double share) {
    return kLeft + kWidth * (std::log2(share) - first) / (last - first);
  };
  const auto y = [&](double served) { return kTop + kHeight * (1 - served); };
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"380\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n"
         "<rect width=\"640\" height=\"380\" fill=\"white\"/>\n";
  for (int tenth = 0; tenth <= 10; tenth += 2)
    svg << "<path d=\"M" << kLeft << " " << y(tenth / 10.0) << "h" << kWidth
        << "\" stroke=\"#ddd\"/><text x=\"30\" y=\"" << y(tenth / 10.0) + 4 << "\">" << tenth * 10
        << "%</text>\n";
  for (const ReplayPoint& point : points)
    svg << "<text x=\"" << x(point.share) - 12 << "\" y=\"340\">" << point.share * 100
        << "%</text>\n";
  svg << "<text x=\"200\" y=\"365\">share of all experts that the cache keeps</text>\n";
  const auto curve = [&](const char* name, const char* colour, double ReplayPoint::*value) {
    svg << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << colour << "\" points=\"";
    for (const ReplayPoint& point : points) svg << x(point.share) << "," << y(point.*value) << " ";
    svg << "\"/><text fill=\"" << colour << "\" x=\"" << kLeft + kWidth + 6 << "\" y=\""
        << y(points.back().*value) + 4 << "\">" << name << "</text>\n";
  };
  curve("optimum", "#888", &ReplayPoint::optimum);
  curve("WASTE", "#06c", &ReplayPoint::ours);
  curve("LRU", "#c40", &ReplayPoint::lru);
  svg << "</svg>\n";
  if (!(std::ofstream(path) << svg.str())) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace waste

#endif  // WASTE_TESTS_BENCH_REPLAY_PLOT_H_
