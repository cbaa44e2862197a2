// SPDX-License-Identifier: Apache-2.0
//
// All that the forward pass knows of streaming: it asks for some experts of a layer and gets
// leases, whose records stay in memory until the lease is destroyed. Tests give it a source that
// has every expert in memory.

#ifndef WASTE_CORE_STREAM_EXPERT_SOURCE_H_
#define WASTE_CORE_STREAM_EXPERT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "container/container.h"

namespace waste {

// Pins one expert's record. Move-only; unpins when destroyed. Must not outlive its source.
class ExpertLease {
 public:
  ExpertLease(const ExpertRecord& record, std::function<void()> release)
      : record_(record), release_(std::move(release)) {}
  ExpertLease(ExpertLease&& other) noexcept
      : record_(other.record_), release_(std::exchange(other.release_, nullptr)) {}
  ExpertLease& operator=(ExpertLease&&) = delete;
  ~ExpertLease() {
    if (release_) release_();
  }

  const ExpertRecord& record() const { return record_; }

 private:
  ExpertRecord record_;
  std::function<void()> release_;
};

class ExpertSource {
 public:
  virtual ~ExpertSource() = default;

  // Most experts that one Acquire may ask for.
  virtual int64_t max_leases() const = 0;

  // Appends one lease for each of `experts` (distinct, at most max_leases()) to `out`, which the
  // caller has emptied, in the order asked for. Blocks while records are read. `stop`, polled
  // between reads, ends it with kCancelled. Errors name bank and expert; then `out` is empty.
  virtual Status Acquire(int32_t layer, std::span<const int32_t> experts,
                         const std::function<bool()>& stop, std::vector<ExpertLease>& out) = 0;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_EXPERT_SOURCE_H_
