// SPDX-License-Identifier: Apache-2.0
//
// Which rows of a step belong to which session. Rows of a session are consecutive and in the order
// of its text. Plain data.

#ifndef WASTE_CORE_MODEL_SESSION_SLICE_H_
#define WASTE_CORE_MODEL_SESSION_SLICE_H_

#include <cstdint>

#include "model/state.h"

namespace waste {

struct SessionSlice {
  SessionState* state;
  int64_t begin;  // its first row of the step
  int64_t count;  // of rows
};

}  // namespace waste

#endif  // WASTE_CORE_MODEL_SESSION_SLICE_H_
