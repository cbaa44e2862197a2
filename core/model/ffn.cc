// SPDX-License-Identifier: Apache-2.0

#include "model/ffn.h"

#include <algorithm>

#include "model/primitives.h"

namespace waste {

FfnScratch FfnScratch::Plan(Arena& arena, const ModelConfig& config, int64_t rows) {
  const int64_t shared = config.moe.inner * config.moe.shared_experts;
  return {.inner = arena.Floats(std::min(rows, kTileRows) * std::max(config.dense_inner, shared))};
}

int64_t FfnScratch::ThreadBytes(const ModelConfig& config) {
  Arena arena;
  arena.Floats(RowsScratch(config.hidden));
  arena.Floats(kTileRows * Compute::kBlock);
  return arena.peak_bytes();
}

namespace {

// At most compute.PieceRows(x).
void RunTile(Compute& compute, const ModelConfig& config, const FfnWeights& w,
             const FfnScratch& scratch, Rows x, float* out) {
  float* inner = scratch.inner;  // [rows, w.inner]: gate, then its activation

  // A piece makes the same rows of gate and up, so that the activation follows at once.
  const int64_t grain = std::min(compute.RowGrain(2 * config.hidden * x.count, x), Compute::kBlock);
  const RowIntegers integers = compute.Integers(x, config.hidden);
  compute.Run(w.inner, grain, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    Arena arena(thread.memory());
    float* kernel_scratch = arena.Floats(RowsScratch(config.hidden));
    float* up = arena.Floats(x.count * Compute::kBlock);  // [rows, kBlock]
    for (int64_t r = begin; r < end; r += Compute::kBlock) {
      const int64_t n = std::min(end - r, Compute::kBlock);
      compute.Multiply(w.gate, r, r + n, x, integers, inner, w.inner, kernel_scratch);
      compute.Multiply(RowsOf(w.up, r, r + n), 0, n, x, integers, up, Compute::kBlock,
                       kernel_scratch);
      for (int64_t row = 0; row < x.count; ++row)
        Activate(compute.kernels, config, inner + row * w.inner + r, up + row * Compute::kBlock, n);
    }
  });

  const Projection down[] = {{&w.down, out, config.hidden}};
  compute.Project(down, x.At(inner, w.inner));
}

}  // namespace

void RunFfn(Compute& compute, const ModelConfig& config, const FfnWeights& w,
            const FfnScratch& scratch, Rows x, float* out) {
  compute.InPieces(x, [&](Rows piece, int64_t row) {
    RunTile(compute, config, w, scratch, piece, out + row * config.hidden);
  });
}

}  // namespace waste
