// SPDX-License-Identifier: Apache-2.0
//
// Memory of whole pages for what measures the machine: in huge ones where the system has them, as
// the library asks for too, because memory in small ones is read at half the speed. Any thread.

#ifndef WASTE_EXAMPLES_CLI_PAGE_MEMORY_H_
#define WASTE_EXAMPLES_CLI_PAGE_MEMORY_H_

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace waste_cli {

inline constexpr int64_t kPage = 4096;

struct FreeMemory {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<uint8_t, FreeMemory>;

inline Memory AllocatePages(int64_t bytes) {
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t unit = bytes >= 4 * kHugePage ? kHugePage : kPage;
  const auto size = static_cast<size_t>((bytes + unit - 1) / unit * unit);
  Memory memory(static_cast<uint8_t*>(std::aligned_alloc(static_cast<size_t>(unit), size)));
#if defined(MADV_HUGEPAGE)
  if (unit == kHugePage) madvise(memory.get(), size, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_PAGE_MEMORY_H_
