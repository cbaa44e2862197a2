// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 as zlib computes it (polynomial 0xEDB88320, reflected), for expert records and state
// files. Eight bytes a step over eight tables. Pure functions; any thread.

#ifndef WASTE_CORE_BASE_CRC32_H_
#define WASTE_CORE_BASE_CRC32_H_

#include <cstdint>
#include <span>

namespace waste {

// Continues `crc` (0 to start) over `bytes`.
uint32_t Crc32(std::span<const uint8_t> bytes, uint32_t crc = 0);

}  // namespace waste

#endif  // WASTE_CORE_BASE_CRC32_H_
