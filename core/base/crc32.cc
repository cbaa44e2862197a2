// SPDX-License-Identifier: Apache-2.0

#include "base/crc32.h"

#include <array>

#include "base/bytes.h"

namespace waste {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: what byte b contributes when k bytes follow it.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t b = 0; b < 256; ++b)
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xFF];
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t crc) {
  crc = ~crc;
  while (bytes.size() >= 8) {
    const uint64_t word = LoadLittle(bytes.data(), 8) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xFF];
    bytes = bytes.subspan(8);
  }
  for (const uint8_t byte : bytes) crc = crc >> 8 ^ kTables[0][(crc ^ byte) & 0xFF];
  return ~crc;
}

}  // namespace waste
