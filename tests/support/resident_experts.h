// SPDX-License-Identifier: Apache-2.0
//
// An ExpertSource that holds every expert of a container in memory, so that a test of the forward
// pass has no streaming in it. Records are checked, crc included, when it is made. Throws when they
// are not sound. One thread at a time.

#ifndef WASTE_TESTS_SUPPORT_RESIDENT_EXPERTS_H_
#define WASTE_TESTS_SUPPORT_RESIDENT_EXPERTS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/aligned_buffer.h"
#include "container/container.h"
#include "stream/expert_source.h"

namespace waste {

class ResidentExperts : public ExpertSource {
 public:
  explicit ResidentExperts(const Container& container) {
    for (const auto& [layer, entry] : container.manifest().layers) {
      arrived_.reserve(static_cast<size_t>(entry.experts));  // a fetch is to allocate nothing
      for (int64_t expert = 0; expert < entry.experts; ++expert) {
        Load(container, layer, static_cast<int32_t>(expert));
      }
    }
  }

  int64_t max_experts() const override { return std::numeric_limits<int32_t>::max(); }

  Status Fetch(int32_t layer, std::span<const int32_t> experts, const std::function<bool()>& stop,
               const Use& use) override {
    if (stop && stop()) return Status(Code::kCancelled, "asked to stop");
    arrived_.clear();
    for (size_t i = 0; i < experts.size(); ++i)
      arrived_.push_back({static_cast<int64_t>(i), records_.at({layer, experts[i]})});
    use(arrived_);
    return Status();
  }

 private:
  void Load(const Container& container, int32_t layer, int32_t expert) {
    auto memory = AlignedBuffer::Allocate(container.record_bytes());
    if (!memory.ok()) throw std::runtime_error(memory.status().message());
    const auto bytes = memory->bytes();
    const Status read = container.ReadRecord(layer, expert, bytes, true);
    if (!read.ok()) throw std::runtime_error(read.message());
    auto record = container.ParseRecord(layer, expert, bytes);
    if (!record.ok()) throw std::runtime_error(record.status().message());
    records_.emplace(std::pair(layer, expert), *record);
    memory_.push_back(*std::move(memory));
  }

  std::vector<AlignedBuffer> memory_;
  std::map<std::pair<int32_t, int32_t>, ExpertRecord> records_;
  std::vector<ArrivedExpert> arrived_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_RESIDENT_EXPERTS_H_
