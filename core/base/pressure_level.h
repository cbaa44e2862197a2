// SPDX-License-Identifier: Apache-2.0
//
// How short memory is: what os/memory_pressure.h reports and budget/elastic_policy.h acts on. The
// values are in order, so that the worst of several reports is their maximum.

#ifndef WASTE_CORE_BASE_PRESSURE_LEVEL_H_
#define WASTE_CORE_BASE_PRESSURE_LEVEL_H_

#include <cstdint>

namespace waste {

enum class PressureLevel : int32_t {
  kNone = 0,
  kTight = 1,     // keep what you have, take no more
  kSome = 2,      // memory is short: give some back
  kCritical = 3,  // processes are about to be killed: give back all that can be read again
};

}  // namespace waste

#endif  // WASTE_CORE_BASE_PRESSURE_LEVEL_H_
