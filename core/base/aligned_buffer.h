// SPDX-License-Identifier: Apache-2.0
//
// Aligned memory that is allocated once and never resized: trunk, expert slots, state, scratch. A
// large one is fresh pages of the system, so what is never written is never resident. Allocation
// failure is a Status, not bad_alloc. Move-only. The contents are not synchronised.

#ifndef WASTE_CORE_BASE_ALIGNED_BUFFER_H_
#define WASTE_CORE_BASE_ALIGNED_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/status.h"

namespace waste {

class AlignedBuffer {
 public:
  static constexpr int64_t kAlignment = 4096;  // bytes: a page, and what direct I/O needs

  AlignedBuffer() = default;

  // `size` bytes, not initialised. Errors: kNoMemory with the size.
  static Result<AlignedBuffer> Allocate(int64_t size);
  // The same, zeroed without touching the pages.
  static Result<AlignedBuffer> AllocateZeroed(int64_t size);
  // The same in huge pages, where the system has them: read up to twice as fast.
  static Result<AlignedBuffer> AllocateHuge(int64_t size);

  int64_t size() const { return size_; }
  uint8_t* data() { return bytes_.get(); }
  const uint8_t* data() const { return bytes_.get(); }
  std::span<uint8_t> bytes() { return {data(), static_cast<size_t>(size_)}; }
  std::span<const uint8_t> bytes() const { return {data(), static_cast<size_t>(size_)}; }
  float* floats() { return reinterpret_cast<float*>(data()); }
  const float* floats() const { return reinterpret_cast<const float*>(data()); }

 private:
  struct Unmap {
    int64_t mapped_bytes;
    void operator()(uint8_t* bytes) const;
  };

  AlignedBuffer(std::unique_ptr<uint8_t, Unmap> bytes, int64_t size)
      : bytes_(std::move(bytes)), size_(size) {}

  std::unique_ptr<uint8_t, Unmap> bytes_;
  int64_t size_ = 0;
};

}  // namespace waste

#endif  // WASTE_CORE_BASE_ALIGNED_BUFFER_H_
