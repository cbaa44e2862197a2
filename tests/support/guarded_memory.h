// SPDX-License-Identifier: Apache-2.0
//
// A copy of some values that ends where the next page cannot be touched: a kernel that reads or
// writes one byte too many dies on the spot, sanitizer or not. Move-only. One thread.

#ifndef WASTE_TESTS_SUPPORT_GUARDED_MEMORY_H_
#define WASTE_TESTS_SUPPORT_GUARDED_MEMORY_H_

#include <boost/test/unit_test.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace waste {

template <typename T>
class Guarded {
 public:
  explicit Guarded(const std::vector<T>& values) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = values.size() * sizeof(T);
    const size_t used = (bytes + page - 1) / page * page;
    mapped_bytes_ = used + page;
    void* const mapping =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(mapping != MAP_FAILED);
    mapping_ = static_cast<uint8_t*>(mapping);
    BOOST_REQUIRE(mprotect(mapping_ + used, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(mapping_ + used - bytes);
    if (bytes != 0) std::memcpy(data_, values.data(), bytes);
  }
  ~Guarded() { munmap(mapping_, mapped_bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return data_; }

 private:
  uint8_t* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  T* data_ = nullptr;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_GUARDED_MEMORY_H_
