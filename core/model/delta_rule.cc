// SPDX-License-Identifier: Apache-2.0
//
// The chunked (WY) form. Written out from the state S before a chunk, with E_t = a_1 ... a_t and
// E_ti = a_{i+1} ... a_t (elementwise products):
//
//   d_t = beta_t (v_t - S^T (E_t k_t) - sum_{i<t} A_ti d_i),   A_ti = k_t . (E_ti k_i)
//   o_t = S^T (E_t q_t) + sum_{i<=t} Q_ti d_i,                  Q_ti = q_t . (E_ti k_i)
//   S'  = diag(E_n) S + sum_i (E_ni k_i) d_i^T
//
// The usual form divides decays (E_t / E_i), which overflows when they are strong. Here they are
// only ever multiplied up, each factor at most 1: exact to a few roundings for any decay, 0
// included. That takes one product a pair (t, i) and key. On a CPU the work on S is 3 dim^2
// multiply-adds a row whatever the chunk, and the pairs grow with it, so chunks are just long
// enough that S is swept seldom.

#include "model/delta_rule.h"

#include <algorithm>

namespace waste {
namespace {

// All row-major. Rows of k and q stand one behind the other, so that both meet the state at once.
struct Chunk {
  float* k_begin;  // [rows, dim]: E_t k_t
  float* q_begin;  // [rows, dim], behind it: E_t q_t
  float* k_end;    // [rows, dim]: E_ni k_i
  float* decay;    // [dim]: E_t, at last E_n
  float* kk;       // [chunk, chunk]: A
  float* qk;       // [chunk, chunk]: Q
  float* delta;    // [rows, dim]: S^T (E_t k_t), then d
  float* out;      // [rows, dim], behind it

  static Chunk Plan(Arena& arena, int64_t dim) {
    Chunk chunk;
    chunk.k_begin = arena.Floats(2 * kDeltaChunk * dim);
    chunk.k_end = arena.Floats(kDeltaChunk * dim);
    chunk.delta = arena.Floats(2 * kDeltaChunk * dim);
    chunk.decay = arena.Floats(dim);
    chunk.kk = arena.Floats(kDeltaChunk * kDeltaChunk);
    chunk.qk = arena.Floats(kDeltaChunk * kDeltaChunk);
    return chunk;
  }
  void SetRows(int64_t rows, int64_t dim) {
    q_begin = k_begin + rows * dim;
    out = delta + rows * dim;
  }
};

void DecayFromBegin(const Kernels& kernels, const DeltaRows& rows, int64_t dim, Chunk& chunk) {
  std::fill_n(chunk.decay, dim, 1.0f);
  for (int64_t t = 0; t < rows.count; ++t) {
    const int64_t at = t * rows.stride;
    kernels.multiply(rows.decay + at, chunk.decay, dim, chunk.decay);
    kernels.multiply(chunk.decay, rows.k + at, dim, chunk.k_begin + t * dim);
    kernels.multiply(chunk.decay, rows.q + at, dim, chunk.q_begin + t * dim);
  }
}

// A and Q, column by column: k_i is decayed on to the end of the chunk, row after row.
void DecayToEnd(const Kernels& kernels, const DeltaRows& rows, int64_t dim, Chunk& chunk) {
  std::fill_n(chunk.qk, kDeltaChunk * kDeltaChunk, 0.0f);
  for (int64_t i = 0; i < rows.count; ++i) {
    float* k = chunk.k_end + i * dim;  // E_ti k_i
    std::copy_n(rows.k + i * rows.stride, dim, k);
    chunk.qk[i * kDeltaChunk + i] = kernels.dot(rows.q + i * rows.stride, k, dim);
    if (i + 1 == rows.count) break;
    const int64_t below = (i + 1) * rows.stride, at = (i + 1) * kDeltaChunk + i;
    kernels.decayed_dots(rows.decay + below, rows.k + below, rows.q + below, rows.stride,
                         rows.count - i - 1, dim, k, chunk.kk + at, chunk.qk + at, kDeltaChunk);
  }
}

void ReadState(const Kernels& kernels, const float* state, int64_t count, int64_t dim,
               Chunk& chunk) {
  std::fill_n(chunk.delta, 2 * count * dim, 0.0f);
  kernels.multiply_add(chunk.k_begin, dim, 1, state, dim, 2 * count, dim, dim, chunk.delta, dim);
}

// The unit lower-triangular solve for d, and the outputs that follow from it.
void Solve(const Kernels& kernels, const DeltaRows& rows, int64_t dim, Chunk& chunk) {
  for (int64_t t = 0; t < rows.count; ++t) {
    float* delta = chunk.delta + t * dim;
    kernels.multiply_add(chunk.kk + t * kDeltaChunk, 0, 1, chunk.delta, dim, 1, t, dim, delta, dim);
    const float beta = rows.beta[t * rows.beta_stride];
    const float* v = rows.v + t * rows.stride;
    for (int64_t j = 0; j < dim; ++j) delta[j] = beta * (v[j] - delta[j]);
  }
  // Outputs need all of d above their row: zeros stand in for what is below.
  kernels.multiply_add(chunk.qk, kDeltaChunk, 1, chunk.delta, dim, rows.count, rows.count, dim,
                       chunk.out, dim);
}

void WriteState(const Kernels& kernels, const Chunk& chunk, int64_t count, int64_t dim,
                const float* state, float* next) {
  constexpr int64_t kKeys = 16;  // of the state at a time: they stay in the nearest cache
  for (int64_t begin = 0; begin < dim; begin += kKeys) {
    const int64_t keys = std::min(kKeys, dim - begin);
    kernels.scale_rows(chunk.decay + begin, state + begin * dim, keys, dim, next + begin * dim);
    kernels.multiply_add(chunk.k_end + begin, 1, dim, chunk.delta, dim, keys, count, dim,
                         next + begin * dim, dim);
  }
}

DeltaRows Part(const DeltaRows& rows, int64_t begin, int64_t count) {
  DeltaRows part = rows;
  for (const float** input : {&part.q, &part.k, &part.v, &part.decay})
    *input += begin * rows.stride;
  part.beta += begin * rows.beta_stride;
  part.out += begin * rows.stride;
  part.count = count;
  part.position += begin;
  return part;
}

}  // namespace

int64_t DeltaScratchBytes(int64_t dim) {
  Arena arena;
  Chunk::Plan(arena, dim);
  return arena.peak_bytes();
}

void DeltaRecurrent(const Kernels& kernels, const DeltaRows& rows, int64_t dim, const float* state,
                    float* next, uint8_t* scratch) {
  Arena arena(scratch);
  float* out = arena.Floats(dim);
  float* kernel_scratch = arena.Floats(dim);
  for (int64_t t = 0; t < rows.count; ++t) {
    const int64_t at = t * rows.stride;
    kernels.delta_step(t == 0 ? state : next, next, rows.decay + at, rows.k + at, rows.q + at,
                       rows.v + at, rows.beta[t * rows.beta_stride], dim, dim, out, kernel_scratch);
    std::copy_n(out, dim, rows.out + at);
  }
}

void DeltaChunked(const Kernels& kernels, const DeltaRows& rows, int64_t dim, const float* state,
                  float* next, uint8_t* scratch) {
  Arena arena(scratch);
  Chunk chunk = Chunk::Plan(arena, dim);
  for (int64_t begin = 0; begin < rows.count;) {
    const int64_t room = kDeltaChunk - (rows.position + begin) % kDeltaChunk;
    const DeltaRows part = Part(rows, begin, std::min(rows.count - begin, room));
    const float* const before = begin == 0 ? state : next;
    chunk.SetRows(part.count, dim);
    DecayFromBegin(kernels, part, dim, chunk);
    DecayToEnd(kernels, part, dim, chunk);
    ReadState(kernels, before, part.count, dim, chunk);
    Solve(kernels, part, dim, chunk);
    WriteState(kernels, chunk, part.count, dim, before, next);
    for (int64_t t = 0; t < part.count; ++t)
      std::copy_n(chunk.out + t * dim, dim, part.out + t * part.stride);
    begin += part.count;
  }
}

}  // namespace waste
