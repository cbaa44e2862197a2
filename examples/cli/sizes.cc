// SPDX-License-Identifier: Apache-2.0

#include "sizes.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace waste_cli {
namespace {

constexpr std::string_view kUnits = "KMGTP";

// The factor of "", "B", "K", "KB", "KiB", in either case.
std::optional<double> FactorOf(std::string_view unit) {
  const auto is = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  if (unit.empty() || (unit.size() == 1 && is(unit[0], 'B'))) return 1.0;
  const size_t power =
      kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  if (power == std::string_view::npos) return std::nullopt;
  unit.remove_prefix(1);
  if (unit.size() == 2 && is(unit[0], 'I')) unit.remove_prefix(1);
  if (unit.size() > 1 || (unit.size() == 1 && !is(unit[0], 'B'))) return std::nullopt;
  return std::ldexp(1.0, 10 * (static_cast<int>(power) + 1));
}

}  // namespace

std::optional<int64_t> ParseSize(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const auto factor = FactorOf({rest, static_cast<size_t>(end - rest)});
  if (!factor) return std::nullopt;
  const double size_bytes = std::floor(number * *factor);
  if (!(size_bytes >= 1 && size_bytes < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(size_bytes);
}

std::string SizeText(int64_t size_bytes) {
  double size = static_cast<double>(size_bytes);
  if (size < 1024) return std::to_string(size_bytes) + " bytes";
  size_t unit = 0;
  for (size /= 1024; size >= 1024 && unit + 1 < kUnits.size(); size /= 1024) ++unit;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %ciB",
                size < 10    ? 2
                : size < 100 ? 1
                             : 0,
                size, kUnits[unit]);
  return text;
}

}  // namespace waste_cli
