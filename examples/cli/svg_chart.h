// SPDX-License-Identifier: Apache-2.0
//
// A page of bars and columns as a self-contained SVG: no script, text as text, colours that follow
// the reader's light or dark setting. Every axis begins at zero and ends at a round number beyond
// all that is drawn on it. Texts are UTF-8; they are escaped, and cut where they would run into
// each other. Knows nothing of what it shows. One thread at a time.

#ifndef WASTE_EXAMPLES_CLI_SVG_CHART_H_
#define WASTE_EXAMPLES_CLI_SVG_CHART_H_

#include <string>
#include <string_view>
#include <vector>

namespace waste_cli {

// What was reached, before the band of what could have been.
struct ChartBar {
  std::string label;
  double value = 0;
  double limit = 0;            // 0: none is drawn
  std::vector<double> points;  // single measurements, as dots
  std::string note;            // its figures, right of the bar
};

// One column a measurement, on an axis from 0 to 100 %.
struct ChartColumns {
  std::string label;
  std::vector<double> shares;  // of [0, 1]
  std::string note;
};

class SvgChart {
 public:
  SvgChart(const std::string& title, const std::vector<std::string>& subtitles);

  // What a solid bar, the band behind it and the dots on it are.
  void AddLegend(const std::string& bar, const std::string& band, const std::string& dots);

  // Bars on one axis. `percent`: values and limits are shares of [0, 1].
  void AddBars(const std::string& title, const std::vector<ChartBar>& bars, bool percent);
  void AddColumns(const std::string& title, const std::vector<ChartColumns>& rows,
                  const std::string& axis_title);
  void AddTable(const std::string& title, const std::vector<std::vector<std::string>>& rows);

  // The whole document.
  std::string Text() const;

 private:
  void Heading(const std::string& title);
  void Put(double x, double y, std::string_view style, std::string_view text, double width_max);
  void Rectangle(double x, double y, double width, double height, std::string_view style);
  void GridLine(double x, double top, double bottom);
  void DrawBar(const ChartBar& bar, double scale_max);
  void DrawColumns(const ChartColumns& row);

  std::string title_;
  std::string body_;
  double y_ = 0;  // where the next thing begins
};

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_SVG_CHART_H_
