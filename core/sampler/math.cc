// SPDX-License-Identifier: Apache-2.0
//
// Both reduce the argument to a small interval around 0 and sum the Taylor series there, as many
// terms as f64 can notice.

#include "sampler/math.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace waste {
namespace {

// ln 2 in two parts: multiples of the high one by an exponent are exact (21 zero bits at its end).
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLog2E = 0x1.71547652b82fep0;

constexpr double kExpMax = 0x1.62e42fefa39efp9;   // the largest whose exp is finite: 709.78...
constexpr double kExpMin = -0x1.74910d52d3051p9;  // below it exp rounds to 0: -745.13...
constexpr double kRound = 0x1.8p52;               // adding it rounds to an integer

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr auto kInverseFactorials = [] {
  std::array<double, 14> table{};
  double factorial = 1;
  for (size_t n = 0; n < table.size(); ++n) {
    if (n > 1) factorial *= static_cast<double>(n);
    table[n] = 1.0 / factorial;
  }
  return table;
}();

constexpr auto kDoubleInverses = [] {  // 2/n, from n = 1 on
  std::array<double, 24> table{};
  for (size_t n = 1; n < table.size(); ++n) table[n] = 2.0 / static_cast<double>(n);
  return table;
}();

// 2^exponent, for exponents of normal numbers.
double PowerOfTwo(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

}  // namespace

// x = k ln 2 + r, |r| <= ln 2 / 2, e^x = 2^k e^r. What rounding took from r is in `lost`.
double PortableExp(double x) {
  if (x != x) return x;
  if (x > kExpMax) return kInfinity;
  if (x < kExpMin) return 0;
  const double k = (x * kLog2E + kRound) - kRound;
  const double high = x - k * kLn2High;
  const double low = k * kLn2Low;
  const double r = high - low;
  const double lost = (high - r) - low;
  double sum = 0;  // of r^(n-2) / n!
  for (size_t n = 13; n >= 2; --n) sum = kInverseFactorials[n] + r * sum;
  const double result = 1.0 + (r + (r * r * sum + (lost + r * lost)));
  // In two steps: 2^k alone may be too large, or no normal number.
  const int64_t exponent = static_cast<int64_t>(k);
  const int64_t half = exponent / 2;
  return result * PowerOfTwo(half) * PowerOfTwo(exponent - half);
}

// x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt 2); with s = f / (2 + f),
// log(1 + f) = 2 atanh s = 2 s + s R, R = 2 s^2/3 + 2 s^4/5 + ..., and 2 s = f - s f. To keep the
// bits of f, s f is taken as f^2/2 - s f^2/2.
double PortableLog(double x) {
  if (x != x || x == kInfinity) return x;
  if (x == 0) return -kInfinity;
  if (x < 0) return kNan;
  int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  constexpr uint64_t kSqrtHalf = std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1);
  const uint64_t above = bits - kSqrtHalf;
  exponent += static_cast<int64_t>(above) >> 52;
  const double f = std::bit_cast<double>(kSqrtHalf + (above & 0xFFFFFFFFFFFFFu)) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double sum = 0;
  for (size_t n = 23; n >= 3; n -= 2) sum = kDoubleInverses[n] + z * sum;
  const double half_square = 0.5 * f * f;
  const double k = static_cast<double>(exponent);
  return k * kLn2High - ((half_square - (s * (half_square + z * sum) + k * kLn2Low)) - f);
}

}  // namespace waste
