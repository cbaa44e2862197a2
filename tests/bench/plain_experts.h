// SPDX-License-Identifier: Apache-2.0
//
// What an expert's matrix takes without vectors of any kind: the loop that one writes first, as a
// baseline of the fast kernels. With T[v][s][e] = x_v . C_s[e] in f32, a row is scale * (the sum
// over v and s of T[v][s][index]), row by row, a look-up after the other. Pure functions; any
// thread.

#ifndef WASTE_TESTS_BENCH_PLAIN_EXPERTS_H_
#define WASTE_TESTS_BENCH_PLAIN_EXPERTS_H_

#include <cstdint>

#include "quant/expert_format.h"

namespace waste {

inline constexpr int64_t PlainTableFloats(const ExpertCodec& codec, int64_t columns) {
  return columns / kVectorSize * codec.stages * codec.entries;
}

// For x [columns], the tables [columns / 8, stages, entries] of every matrix with w's books.
void BuildPlainTables(const ExpertMatrix& w, const float* x, float* tables);

// y = W x, y [rows], for three stages of bytes and for packed6; false for other codecs.
bool PlainRows(const ExpertMatrix& w, const float* tables, float* y);

}  // namespace waste

#endif  // WASTE_TESTS_BENCH_PLAIN_EXPERTS_H_
