// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "base/aligned_buffer.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(aligned_buffer)

BOOST_AUTO_TEST_CASE(every_size_is_aligned_and_writable_to_its_end) {
  for (const int64_t size : {1, 2, 4095, 4096, 4097, 1'000'000}) {
    auto buffer = AlignedBuffer::Allocate(size);
    BOOST_REQUIRE(buffer.ok());
    BOOST_TEST(buffer->size() == size);
    BOOST_TEST(buffer->bytes().size() == static_cast<size_t>(size));
    BOOST_TEST(reinterpret_cast<uintptr_t>(buffer->data()) % AlignedBuffer::kAlignment == 0u);
    std::fill(buffer->bytes().begin(), buffer->bytes().end(), uint8_t{1});
    BOOST_TEST(buffer->bytes().back() == 1);
    BOOST_TEST(static_cast<const void*>(buffer->floats()) == buffer->data());
  }
}

BOOST_AUTO_TEST_CASE(zeroed_memory_is_zero) {
  for (const int64_t size : {1, 4096, 100'000}) {
    const auto buffer = AlignedBuffer::AllocateZeroed(size);
    BOOST_REQUIRE(buffer.ok());
    BOOST_TEST(std::all_of(buffer->bytes().begin(), buffer->bytes().end(),
                           [](uint8_t byte) { return byte == 0; }));
  }
}

BOOST_AUTO_TEST_CASE(no_bytes_are_a_buffer_too) {
  const auto buffer = AlignedBuffer::Allocate(0);
  BOOST_REQUIRE(buffer.ok());
  BOOST_TEST(buffer->size() == 0);
  BOOST_TEST(buffer->bytes().empty());
  const AlignedBuffer none;
  BOOST_TEST(none.size() == 0);
  BOOST_TEST(none.data() == nullptr);
}

BOOST_AUTO_TEST_CASE(memory_moves_with_its_owner) {
  auto result = AlignedBuffer::Allocate(100);
  BOOST_REQUIRE(result.ok());
  AlignedBuffer first = *std::move(result);
  first.bytes()[99] = 42;
  const uint8_t* const data = first.data();
  AlignedBuffer second = std::move(first);
  BOOST_TEST(second.data() == data);
  BOOST_TEST(second.bytes()[99] == 42);
  AlignedBuffer third;
  third = std::move(second);
  BOOST_TEST(third.data() == data);
  BOOST_TEST(third.size() == 100);
}

BOOST_AUTO_TEST_CASE(what_the_system_cannot_give_is_a_status_with_the_size) {
  for (const int64_t size :
       {int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX - 4096, int64_t{1} << 60}) {
    for (auto* allocate : {&AlignedBuffer::Allocate, &AlignedBuffer::AllocateZeroed}) {
      const auto buffer = allocate(size);
      BOOST_REQUIRE(!buffer.ok());
      BOOST_CHECK(buffer.status().code() == Code::kNoMemory);
      BOOST_TEST(buffer.status().message().find(std::to_string(size)) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
