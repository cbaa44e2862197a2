// SPDX-License-Identifier: Apache-2.0
//
// What the machine allows, measured in the process that also measures the kernels: reading memory,
// f32 multiply-adds and bf16 products in registers, and byte look-ups in a table of 256 entries
// that lies in the nearest cache. Memory and multiply-adds are measured by the program's own code
// (examples/cli/limits.h). A limit that this machine has no instructions for is 0. One thread at a
// time calls these; they start their own.

#ifndef WASTE_TESTS_BENCH_MACHINE_LIMITS_H_
#define WASTE_TESTS_BENCH_MACHINE_LIMITS_H_

#include <cstdint>

#include "os/system.h"

namespace waste {

struct MachineLimits {
  double memory_bytes_s = 0;      // one thread
  double memory_all_bytes_s = 0;  // all threads together
  double fma_flops = 0;           // of one thread, f32
  double bf16_flops = 0;          // of one thread
  double word_ops = 0;            // of one thread, in products of words of 16 bits
  double lookups_s = 0;           // of one thread: a byte index, an f32 entry
};

MachineLimits MeasureLimits(int32_t threads, Isa isa);

}  // namespace waste

#endif  // WASTE_TESTS_BENCH_MACHINE_LIMITS_H_
