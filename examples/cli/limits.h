// SPDX-License-Identifier: Apache-2.0
//
// What the machine could do at best, measured now: the speed of reading memory and of multiplying
// and adding. A figure of the engine means something beside these and drive_limit.h only. Each
// takes up to a second. One thread calls; they start their own.

#ifndef WASTE_EXAMPLES_CLI_LIMITS_H_
#define WASTE_EXAMPLES_CLI_LIMITS_H_

#include <cstdint>

namespace waste_cli {

// Bytes a second that `threads` threads read from memory beyond every cache: by plain loads or with
// lines fetched ahead, whichever is faster here. Takes 256 MiB, or twice the third cache.
double MemoryLimit(int32_t threads);

// f32 operations a second (two a fused multiply-add) of `threads` threads, all operands in
// registers, with the widest vectors of the machine up to those of `isa`.
double FmaLimit(int32_t threads, int32_t isa);

// The same of words of 16 bits, four operations a pair of products: what fast arithmetic reads
// prompts with. 0 where `isa` has no such instructions.
double WordLimit(int32_t threads, int32_t isa);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_LIMITS_H_
