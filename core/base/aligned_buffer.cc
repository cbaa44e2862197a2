// SPDX-License-Identifier: Apache-2.0

#include "base/aligned_buffer.h"

#if defined(_WIN32)
#include <malloc.h>

#include <cstring>
#else
#include <sys/mman.h>
#endif

#include "base/checked.h"

namespace waste {
namespace {

Status NoMemory(int64_t size) {
  return Failure(Code::kNoMemory, "the system refused ", size, " bytes of memory");
}

}  // namespace

#if defined(_WIN32)

void AlignedBuffer::Unmap::operator()(uint8_t* bytes) const { _aligned_free(bytes); }

Result<AlignedBuffer> AlignedBuffer::AllocateZeroed(int64_t size) {
  auto buffer = Allocate(size);
  if (buffer.ok()) std::memset(buffer->data(), 0, static_cast<size_t>(size));
  return buffer;
}

Result<AlignedBuffer> AlignedBuffer::Allocate(int64_t size) {
  const int64_t mapped = RoundUp(size > 0 ? size : 1, kAlignment);
  auto* bytes = static_cast<uint8_t*>(_aligned_malloc(static_cast<size_t>(mapped), kAlignment));
  if (bytes == nullptr) return NoMemory(size);
  return AlignedBuffer(std::unique_ptr<uint8_t, Unmap>(bytes, Unmap{mapped}), size);
}

#else

void AlignedBuffer::Unmap::operator()(uint8_t* bytes) const {
  munmap(bytes, static_cast<size_t>(mapped_bytes));
}

// Anonymous pages of the system: zeroed on first touch, given back at once when freed.
Result<AlignedBuffer> AlignedBuffer::AllocateZeroed(int64_t size) {
  if (size < 0 || size > INT64_MAX - kAlignment) return NoMemory(size);
  const int64_t mapped = RoundUp(size > 0 ? size : 1, kAlignment);
  void* bytes = mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return NoMemory(size);
  return AlignedBuffer(std::unique_ptr<uint8_t, Unmap>(static_cast<uint8_t*>(bytes), Unmap{mapped}),
                       size);
}

Result<AlignedBuffer> AlignedBuffer::Allocate(int64_t size) { return AllocateZeroed(size); }

#endif

}  // namespace waste
