// SPDX-License-Identifier: Apache-2.0
//
// All that the forward pass knows of streaming: it asks for some experts of a layer and is given
// them as they come, those in memory first, the others while their reads complete. Tests give it a
// source that has every expert in memory, and ones that fail.

#ifndef WASTE_CORE_STREAM_EXPERT_SOURCE_H_
#define WASTE_CORE_STREAM_EXPERT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "container/container.h"

namespace waste {

// An expert that is in memory now.
struct ArrivedExpert {
  int64_t index = 0;  // among those asked for
  ExpertRecord record;
};

class ExpertSource {
 public:
  // Called on the thread that fetches. What it is given stays in memory until it returns.
  using Use = std::function<void(std::span<const ArrivedExpert>)>;

  virtual ~ExpertSource() = default;

  // Most experts that one Fetch may ask for.
  virtual int64_t max_experts() const = 0;

  // Hands each of `experts` (distinct, at most max_experts()) to `use` once, several at a time, in
  // no fixed order. The first call of `use` comes when all reads are under way, with those experts
  // that needed none, perhaps with none at all: work that needs no expert belongs there. `stop` is
  // polled while reads are waited for, and ends the fetch with kCancelled. After an error, which
  // names bank and expert, some experts may have been handed over and the others never are.
  virtual Status Fetch(int32_t layer, std::span<const int32_t> experts,
                       const std::function<bool()>& stop, const Use& use) = 0;

  // How many guesses Expect heeds; 0: making them is of no use.
  virtual int64_t max_expected() const { return 0; }

  // A guess at what the next Fetch asks for, the likeliest first. Only from within `use`. It
  // changes speed, never results: a wrong one costs a read that nothing else waits for.
  virtual void Expect(int32_t /*layer*/, std::span<const int32_t> /*experts*/) {}
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_SOURCE_H_
