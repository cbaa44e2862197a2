// SPDX-License-Identifier: Apache-2.0

#include "base/aligned_buffer.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#include "base/checked.h"

namespace waste {
namespace {

constexpr int64_t kHugeFrom = int64_t{8} << 20;  // bytes: some huge pages at least

Status NoMemory(int64_t size) {
  return Failure(Code::kNoMemory, "the system refused ", size, " bytes of memory");
}

#if defined(_WIN32)

uint8_t* Map(int64_t size) {
  return static_cast<uint8_t*>(
      VirtualAlloc(nullptr, static_cast<size_t>(size), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void AskForHugePages(uint8_t*, int64_t) {}

#else

// The page that a load is in is looked up four hundred times less often, and a CPU that fetches
// ahead need not stop where a page ends. It is a wish: a system without them goes on with small
// ones.
void AskForHugePages(uint8_t* bytes, int64_t size) {
#if defined(MADV_HUGEPAGE)
  madvise(bytes, static_cast<size_t>(size), MADV_HUGEPAGE);
#else
  static_cast<void>(bytes);
  static_cast<void>(size);
#endif
}

uint8_t* Map(int64_t size) {
  void* bytes = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return bytes == MAP_FAILED ? nullptr : static_cast<uint8_t*>(bytes);
}

#endif

}  // namespace

void AlignedBuffer::Unmap::operator()(uint8_t* bytes) const {
#if defined(_WIN32)
  VirtualFree(bytes, 0, MEM_RELEASE);
#else
  munmap(bytes, static_cast<size_t>(mapped_bytes));
#endif
}

// Anonymous pages of the system: zeroed on first touch, given back at once when freed.
Result<AlignedBuffer> AlignedBuffer::AllocateZeroed(int64_t size) {
  if (size < 0 || size > INT64_MAX - kAlignment) return NoMemory(size);
  const int64_t mapped = RoundUp(size > 0 ? size : 1, kAlignment);
  uint8_t* const bytes = Map(mapped);
  if (bytes == nullptr) return NoMemory(size);
  return AlignedBuffer(std::unique_ptr<uint8_t, Unmap>(bytes, Unmap{mapped}), size);
}

Result<AlignedBuffer> AlignedBuffer::Allocate(int64_t size) { return AllocateZeroed(size); }

Result<AlignedBuffer> AlignedBuffer::AllocateHuge(int64_t size) {
  WASTE_ASSIGN(AlignedBuffer buffer, AllocateZeroed(size));
  if (size >= kHugeFrom) AskForHugePages(buffer.data(), size);
  return buffer;
}

}  // namespace waste
