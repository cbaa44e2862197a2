// SPDX-License-Identifier: Apache-2.0
//
// Which rows belong to which session, in a step or in a tile of it. Rows of a session are
// consecutive and in the order of its text. Plain data.

#ifndef WASTE_CORE_MODEL_SESSION_SLICE_H_
#define WASTE_CORE_MODEL_SESSION_SLICE_H_

#include <cstdint>

#include "model/state.h"

namespace waste {

struct SessionSlice {
  SessionState* state;
  int64_t begin;     // its first row of the step or tile
  int64_t count;     // of rows
  int64_t done = 0;  // rows of it that earlier tiles of the step had
  bool is_prompt = false;

  int64_t position() const { return state->position() + done; }  // of its first row here
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_SESSION_SLICE_H_
