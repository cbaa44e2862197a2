// SPDX-License-Identifier: Apache-2.0
//
// Trunk matrices of every format from random bytes, for tests of kernels: any bytes are quantised
// weights, so nothing need be encoded. Scales are of all sizes, subnormal ones included; F16 and
// F32 payloads are finite values. Plain data that points into itself; one thread.

#ifndef WASTE_TESTS_SUPPORT_TRUNK_CASE_H_
#define WASTE_TESTS_SUPPORT_TRUNK_CASE_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "support/kernel_case.h"

namespace waste {

inline constexpr int64_t kTrunkColumns[] = {1,   7,   8,   9,   15,  16,  17,  31,   127, 128,
                                            129, 200, 256, 300, 511, 512, 513, 1029, 1152};

struct RandomTrunk {
  RandomTrunk(TrunkFormat format, int64_t rows, int64_t columns) {
    payload = RandomBytes(7, rows * TrunkRowBytes(format, columns));
    if (format == TrunkFormat::kF16) {
      for (size_t i = 1; i < payload.size(); i += 2) payload[i] &= 0xBF;
    }
    if (format == TrunkFormat::kF32) {
      const std::vector<float> values = RandomFloats(8, rows * columns);
      std::memcpy(payload.data(), values.data(), payload.size());
    }
    if (IsQuantised(format)) {
      for (int64_t i = 0; i < rows * TrunkRowGroups(columns); ++i) {
        const auto half = static_cast<uint16_t>(i % 4 == 3 ? 1 + i % 1023 : 0x1C00 + i % 512);
        scales.push_back(static_cast<uint8_t>(half));
        scales.push_back(static_cast<uint8_t>(half >> 8));
      }
    }
    w = {.format = format,
         .rows = rows,
         .columns = columns,
         .payload = payload.data(),
         .scales = scales.empty() ? nullptr : scales.data()};
  }
  RandomTrunk(const RandomTrunk&) = delete;
  RandomTrunk& operator=(const RandomTrunk&) = delete;

  TrunkMatrix w;  // points into the rest
  std::vector<uint8_t> payload;
  std::vector<uint8_t> scales;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_TRUNK_CASE_H_
