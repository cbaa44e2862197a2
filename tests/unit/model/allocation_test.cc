// SPDX-License-Identifier: Apache-2.0
//
// The token loop allocates nothing. This program's operator new counts while it is told to.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <new>

#include "support/model_rig.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};

}  // namespace

// All forms that end in the same delete are replaced. Not inlined: the compiler would see malloc
// and free in place of a pair that it knows.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}

[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = operator new(size, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(counter_sees_an_allocation) {
  allocations = 0;
  counting = true;
  std::vector<int>* made = new std::vector<int>(100);
  counting = false;
  delete made;
  BOOST_TEST(allocations > 0);
}

BOOST_AUTO_TEST_CASE(no_layer_of_a_step_allocates) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    for (const int32_t threads : {1, 3}) {
      ModelRig rig(model, {.threads = threads, .max_leases = 4});
      const auto state = rig.NewState();
      const auto tokens = RandomTokens(100, rig.config.vocab, 1);
      std::vector<float> logits(static_cast<size_t>(rig.config.vocab));
      // From the end of the first layer on: before it, embeddings are read from the file.
      rig.forward->set_hidden_observer([](int64_t, std::span<const float>) { counting = true; });
      int64_t begin = 0;
      for (const int64_t rows : {64, 1, 1, 20, 5}) {
        SessionRows step{state.get(), std::span(tokens).subspan(begin, rows), logits};
        begin += rows;
        allocations = 0;
        const Status status = rig.forward->Step({&step, 1}, {});
        counting = false;
        BOOST_TEST(status.ok());
        BOOST_TEST(allocations == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scratch_is_what_was_announced_and_does_not_grow_with_the_context) {
  const TinyModel model(TinyK3());
  const ModelRig rig(model);
  const int64_t bytes = Forward::ScratchBytes(rig.config, 100, 2);
  BOOST_TEST(bytes > 0);
  BOOST_TEST(Forward::ScratchBytes(rig.config, 1 << 20, 2) == bytes);
  BOOST_TEST(Forward::ScratchBytes(rig.config, 100, 4) > bytes);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
