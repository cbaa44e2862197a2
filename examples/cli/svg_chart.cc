// SPDX-License-Identifier: Apache-2.0

#include "svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace waste_cli {
namespace {

constexpr double kWidth = 760, kMargin = 24;
constexpr double kPlotLeft = 150, kPlotWidth = 360, kPlotRight = kPlotLeft + kPlotWidth;
constexpr double kNoteLeft = kPlotRight + 18;
constexpr double kBarHeight = 14, kRowHeight = 26, kColumnsHeight = 44;
constexpr double kLetterWidth = 6.3;  // of 12 px text, on average; bold titles are 18 px
constexpr size_t kPointsMax = 100;    // more dots would only be a line

constexpr const char* kStyle = R"(<style>
svg { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; background: #fff }
text { fill: #1f2328 } .title { font-size: 18px; font-weight: 600 }
.heading { font-size: 13px; font-weight: 600 } .muted { fill: #59636e }
.right { text-anchor: end } .middle { text-anchor: middle }
.page { fill: #fff } .grid { stroke: #d9dee3 } .band { fill: #dbe5f2 } .bar { fill: #2f6fd0 }
.edge { stroke: #59636e; stroke-width: 1.5 } .dot { fill: #fff; stroke: #0b2e66 }
.column { fill: #2f9e8f }
@media (prefers-color-scheme: dark) {
svg { background: #10151b } text { fill: #e6edf3 } .muted { fill: #9aa5b1 }
.page { fill: #10151b } .grid { stroke: #2d3640 } .band { fill: #26384f } .bar { fill: #4f96f0 }
.edge { stroke: #9aa5b1 } .dot { fill: #10151b; stroke: #d6e9ff } .column { fill: #3fb8a8 }
}
</style>
)";

// XML has no control characters but these two, in whatever spelling.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return escaped;
}

// At most `letters` characters of UTF-8; what is cut ends with an ellipsis.
std::string Cut(std::string_view text, size_t letters) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  if (static_cast<size_t>(std::count_if(text.begin(), text.end(), begins)) <= letters)
    return std::string(text);
  size_t at = 0, seen = 0;
  while (at < text.size() && (!begins(text[at]) || ++seen < letters)) ++at;
  return std::string(text.substr(0, at)) + "…";
}

std::string Pixels(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// A column as a part of a path, from its lower left corner.
std::string ColumnPath(double x, double bottom, double width, double height) {
  char text[160];
  std::snprintf(text, sizeof text, "M%.1f %.1fv%.1fh%.1fv%.1fz", x, bottom, -height, width, height);
  return text;
}

// The distance of about four marks from 0 to `most`: 1, 2 or 5 and zeros.
double TickStep(double most) {
  const double rough = most / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

std::string TickText(double value, double step, bool percent) {
  char text[32];
  const double shown = percent ? value * 100 : value;
  const double shown_step = percent ? step * 100 : step;
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(shown_step) - 1e-9)));
  std::snprintf(text, sizeof text, percent ? "%.*f %%" : "%.*f", decimals, shown);
  return text;
}

double Most(const std::vector<ChartBar>& bars) {
  double most = 0;
  for (const ChartBar& bar : bars) {
    most = std::max({most, bar.value, bar.limit});
    for (const double point : bar.points) most = std::max(most, point);
  }
  return most > 0 && std::isfinite(most) ? most : 1;
}

}  // namespace

SvgChart::SvgChart(const std::string& title, const std::vector<std::string>& subtitles)
    : title_(title), y_(kMargin + 14) {
  Put(kMargin, y_, "title", title, (kWidth - 2 * kMargin) * 12 / 18);
  for (const std::string& line : subtitles)
    Put(kMargin, y_ += 19, "muted", line, kWidth - 2 * kMargin);
  y_ += 8;
}

void SvgChart::Put(double x, double y, std::string_view style, std::string_view text,
                   double width_max) {
  const std::string fitting = Cut(text, static_cast<size_t>(width_max / kLetterWidth));
  body_ += "<text class=\"" + std::string(style) + "\" x=\"" + Pixels(x) + "\" y=\"" + Pixels(y) +
           "\">" + Escaped(fitting) + "</text>\n";
}

void SvgChart::Rectangle(double x, double y, double width, double height, std::string_view style) {
  body_ += "<rect class=\"" + std::string(style) + "\" x=\"" + Pixels(x) + "\" y=\"" + Pixels(y) +
           "\" width=\"" + Pixels(width) + "\" height=\"" + Pixels(height) + "\"/>\n";
}

void SvgChart::GridLine(double x, double top, double bottom) {
  body_ += "<path class=\"grid\" d=\"M" + Pixels(x) + " " + Pixels(top) + "V" + Pixels(bottom) +
           "\"/>\n";
}

void SvgChart::Heading(const std::string& title) {
  Put(kMargin, y_ += 26, "heading", title, kWidth - 2 * kMargin);
  y_ += 12;
}

void SvgChart::AddLegend(const std::string& bar, const std::string& band, const std::string& dots) {
  y_ += 14;
  double x = kMargin;
  const auto put = [&](const std::string& text) {
    Put(x + 20, y_, "muted", text, kWidth / 3);
    x += 44 + kLetterWidth * static_cast<double>(text.size());
  };
  Rectangle(x, y_ - 10, 14, 11, "bar");
  put(bar);
  Rectangle(x, y_ - 10, 14, 11, "band");
  put(band);
  body_ += "<circle class=\"dot\" cx=\"" + Pixels(x + 8) + "\" cy=\"" + Pixels(y_ - 4) +
           "\" r=\"3\"/>\n";
  put(dots);
}

void SvgChart::AddBars(const std::string& title, const std::vector<ChartBar>& bars, bool percent) {
  Heading(title);
  const double most = std::max(Most(bars), percent ? 1.0 : 0.0);
  const double step = percent && most <= 1 ? 0.25 : TickStep(most);
  const int ticks = static_cast<int>(std::ceil(most / step - 1e-9));
  const double bottom = y_ + kRowHeight * static_cast<double>(bars.size());
  for (int tick = 0; tick <= ticks; ++tick) {
    const double x = kPlotLeft + kPlotWidth * tick / ticks;
    GridLine(x, y_, bottom + 4);
    Put(x, bottom + 17, "muted middle", TickText(tick * step, step, percent), kPlotWidth);
  }
  for (const ChartBar& bar : bars) DrawBar(bar, ticks * step);
  y_ += 18;
}

void SvgChart::DrawBar(const ChartBar& bar, double scale_max) {
  const double top = y_ + (kRowHeight - kBarHeight) / 2, middle = y_ + kRowHeight / 2;
  const auto width = [&](double value) {
    return std::isfinite(value) ? kPlotWidth * std::max(value, 0.0) / scale_max : 0;
  };
  Put(kPlotLeft - 10, middle + 4, "right", bar.label, kPlotLeft - 10 - kMargin / 2);
  if (bar.limit > 0) Rectangle(kPlotLeft, top, width(bar.limit), kBarHeight, "band");
  Rectangle(kPlotLeft, top, width(bar.value), kBarHeight, "bar");
  if (bar.limit > 0)
    body_ += "<path class=\"edge\" d=\"M" + Pixels(kPlotLeft + width(bar.limit)) + " " +
             Pixels(top - 2) + "v" + Pixels(kBarHeight + 4) + "\"/>\n";
  if (bar.points.size() <= kPointsMax)
    for (const double point : bar.points)
      body_ += "<circle class=\"dot\" cx=\"" + Pixels(kPlotLeft + width(point)) + "\" cy=\"" +
               Pixels(middle) + "\" r=\"3\"/>\n";
  Put(kNoteLeft, middle + 4, "note", bar.note, kWidth - kMargin / 2 - kNoteLeft);
  y_ += kRowHeight;
}

void SvgChart::AddColumns(const std::string& title, const std::vector<ChartColumns>& rows,
                          const std::string& axis_title) {
  Heading(title);
  for (const ChartColumns& row : rows) DrawColumns(row);
  Put(kPlotLeft, y_, "muted", axis_title, kPlotWidth);
  y_ += 4;
}

void SvgChart::DrawColumns(const ChartColumns& row) {
  const double top = y_ + 6, bottom = top + kColumnsHeight;
  for (const double share : {0.0, 0.5, 1.0}) {
    const double y = bottom - kColumnsHeight * share;
    body_ += "<path class=\"grid\" d=\"M" + Pixels(kPlotLeft) + " " + Pixels(y) + "H" +
             Pixels(kPlotRight) + "\"/>\n";
    Put(kPlotRight + 4, y + 4, "muted", TickText(share, 0.5, true), 40);
  }
  const auto count = static_cast<double>(std::max<size_t>(row.shares.size(), 1));
  const double pitch = std::min(40.0, kPlotWidth / count);
  std::string path;
  for (size_t i = 0; i < row.shares.size(); ++i) {
    const double height = kColumnsHeight * std::clamp(row.shares[i], 0.0, 1.0);
    path +=
        ColumnPath(kPlotLeft + pitch * (static_cast<double>(i) + 0.1), bottom, pitch * 0.8, height);
  }
  if (!path.empty()) body_ += "<path class=\"column\" d=\"" + path + "\"/>\n";
  Put(kPlotLeft - 10, (top + bottom) / 2 + 4, "right", row.label, kPlotLeft - 10 - kMargin / 2);
  Put(kNoteLeft + 28, (top + bottom) / 2 + 4, "note", row.note, kWidth - kNoteLeft - 40);
  y_ = bottom + 18;
}

void SvgChart::AddTable(const std::string& title,
                        const std::vector<std::vector<std::string>>& rows) {
  Heading(title);
  y_ -= 8;
  constexpr double kCell = 110;
  for (const auto& row : rows) {
    y_ += 18;
    for (size_t i = 0; i < row.size(); ++i) {
      const double x = kPlotLeft + kCell * static_cast<double>(i) - 10;
      Put(x, y_, i == 0 ? "muted right" : "right", row[i], kCell);
    }
  }
  y_ += 4;
}

std::string SvgChart::Text() const {
  const std::string width = Pixels(kWidth), height = Pixels(std::ceil(y_ + kMargin));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
         "width=\"" +
         width + "\" height=\"" + height + "\" viewBox=\"0 0 " + width + " " + height +
         "\" role=\"img\">\n<title>" + Escaped(title_) + "</title>\n" + kStyle +
         "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n" + body_ + "</svg>\n";
}

}  // namespace waste_cli
