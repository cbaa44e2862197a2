// SPDX-License-Identifier: Apache-2.0
//
// How many reads at once a drive wants: random records are read with two, four and eight lanes for
// a few hundredths of a second each, several times in turn. Two saturate many drives, others want
// more; more than help only make each read later.

#ifndef WASTE_CORE_STREAM_LANE_CALIBRATION_H_
#define WASTE_CORE_STREAM_LANE_CALIBRATION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "container/container.h"
#include "stream/expert_reader.h"

namespace waste {

struct LaneSpeed {
  int32_t lanes = 0;
  double bytes_s = 0;
};

// The fewest lanes within 10 % of the best; of nothing measured, two.
int32_t ChooseLanes(std::span<const LaneSpeed> speeds);

// Speeds of the counts that `reader` and `memory` (records of container.record_bytes(), one after
// another) allow, the best of each count's turns. Nothing is measured where reads fail: the first
// step tells of that. Takes about 0.3 s. Before anything else uses the reader or the memory.
std::vector<LaneSpeed> MeasureLanes(const Container& container, ExpertReader& reader,
                                    std::span<uint8_t> memory);

}  // namespace waste

#endif  // WASTE_CORE_STREAM_LANE_CALIBRATION_H_
