// SPDX-License-Identifier: Apache-2.0
//
// What the machine grants this process: cores, memory (limits of every cgroup above it counted),
// instruction sets, and a monotonic clock. Read afresh at each call; nothing is cached. Any thread.

#ifndef WASTE_CORE_OS_SYSTEM_H_
#define WASTE_CORE_OS_SYSTEM_H_

#include <cstdint>
#include <span>

namespace waste {

// Cores that the scheduler would use for this process (affinity and cgroup quota counted), >= 1.
int32_t GrantedCores();

// RAM this process could use now without pushing others out: the smallest of the machine's
// available memory and what every cgroup above leaves (v1 and v2). Bytes.
int64_t UsableMemoryBytes();

// The largest resident size this process has had. Bytes.
int64_t PeakResidentBytes();

// Gives the memory of the whole pages within `bytes` (of an AlignedBuffer) back to the system. What
// they held is lost; they may be written again, and then take memory again.
void DiscardPages(std::span<uint8_t> bytes);

int64_t MonotonicMicros();

// The instruction sets that kernels are written for, as the C API numbers them.
enum class Isa : int32_t {
  kBest = 0,
  kScalar = 1,
  kAvx2 = 2,
  kAvx512 = 3,
  kNeon = 4,
  kAvx512Vbmi = 5
};

// Whether this machine and its system run `isa` (AVX2 includes FMA and F16C; AVX-512 means F, BW,
// DQ, VL; kAvx512Vbmi adds VBMI and VNNI). kBest and kScalar always do.
bool CpuHas(Isa isa);
const char* IsaName(Isa isa);  // "scalar", "avx2", "avx512", "neon", "avx512vbmi", "best"

}  // namespace waste

#endif  // WASTE_CORE_OS_SYSTEM_H_
