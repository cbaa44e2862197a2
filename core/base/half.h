// SPDX-License-Identifier: Apache-2.0
//
// IEEE half (f16) and bfloat16 to f32 and back, exactly: subnormals are kept (a flushed scale kills
// 128 weights), rounding is to nearest even, infinities and NaN survive. This code defines the
// conversions; SIMD kernels are tested against it. Pure functions; any thread.

#ifndef WASTE_CORE_BASE_HALF_H_
#define WASTE_CORE_BASE_HALF_H_

#include <bit>
#include <cstdint>

namespace waste {

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal or zero: exact
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);   // NaN
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                               // subnormal half
    // Adding 0.5 puts the half's last place at the float's last place, and rounds to even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

inline float Bfloat16ToFloat(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

}  // namespace waste

#endif  // WASTE_CORE_BASE_HALF_H_
