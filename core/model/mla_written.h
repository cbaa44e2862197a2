// SPDX-License-Identifier: Apache-2.0
//
// Attention of tokens that are being written, one row of each session: a long cache is split into
// runs of positions, so that a thread reads its part of the cache once for all heads, and the keys
// and values of a head serve all sessions. How a cache is split depends on its length alone.

#ifndef WASTE_CORE_MODEL_MLA_WRITTEN_H_
#define WASTE_CORE_MODEL_MLA_WRITTEN_H_

#include <cstdint>
#include <span>

#include "model/arena.h"
#include "model/compute.h"
#include "model/config.h"
#include "model/latent_attention.h"
#include "model/session_slice.h"
#include "model/weights.h"

namespace waste {

struct WrittenMlaScratch {
  float* query;     // [rows, heads, cache width]: q~ and the rope part
  float* mean;      // [rows, heads, kv_lora]: sums of latents
  LatentSums runs;  // of one session, [runs, heads]

  static WrittenMlaScratch Plan(Arena& arena, const MlaConfig& mla, int64_t rows);
  static int64_t ThreadBytes(const MlaConfig& mla, int64_t rows);
};

struct WrittenRows {
  const float* q;     // [count, heads, nope + rope]
  const float* gate;  // [count, heads, v], null if there is none
  float* out;         // [count, heads, v]
  int64_t count;
};

// The sessions' caches hold the rows' latents already.
void AttendWritten(Compute& compute, const MlaConfig& mla, const MlaWeights& w,
                   const WrittenMlaScratch& scratch, int64_t layer,
                   std::span<const SessionSlice> sessions, const WrittenRows& rows);

}  // namespace waste

#endif  // WASTE_CORE_MODEL_MLA_WRITTEN_H_
