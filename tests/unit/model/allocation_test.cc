// SPDX-License-Identifier: Apache-2.0
//
// The token loop allocates nothing: a whole step, from reading the embedding to the logits. The
// program's operator new counts.

#include <boost/test/unit_test.hpp>

#include "support/allocation_count.h"
#include "support/model_rig.h"

namespace waste {
namespace {

// A precondition: kernels that are compared (WASTE_CHECK_KERNELS) allocate for it.
boost::test_tools::assertion_result KernelsAllocateNothing(boost::unit_test::test_unit_id) {
  const Kernels& kernels = *Require(KernelsFor(Isa::kBest));
  const float x = 1.0f;
  float y = 2.0f;
  const int64_t before = allocation_count;
  kernels.axpy(3.0f, &x, &y, 1);
  boost::test_tools::assertion_result result(allocation_count == before);
  result.message() << "the kernels of this build are compared with scalar code, and allocate";
  return result;
}

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(counter_sees_an_allocation) {
  const int64_t before = allocation_count;
  delete new std::vector<int>(100);
  BOOST_TEST(allocation_count > before);
}

BOOST_AUTO_TEST_CASE(no_step_allocates, *boost::unit_test::precondition(KernelsAllocateNothing)) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    for (const int32_t threads : {1, 3}) {
      ModelRig rig(
          model,
          {.threads = threads, .isa = Isa::kBest, .max_experts = 4, .forward = {.fast = true}});
      const auto state = rig.NewState();
      const auto tokens = RandomTokens(100, rig.config.vocab, 1);
      std::vector<float> logits(static_cast<size_t>(rig.config.vocab));
      int64_t begin = 0;
      for (const int64_t rows : {64, 1, 1, 20, 5}) {
        SessionRows step{state.get(), std::span(tokens).subspan(begin, rows), logits, rows > 1};
        begin += rows;
        const int64_t before = allocation_count;
        const Status status = rig.forward->Step({&step, 1}, {});
        const int64_t after = allocation_count;
        BOOST_TEST(status.ok());
        BOOST_TEST(after == before);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(scratch_grows_with_threads_and_rows) {
  const TinyModel model(TinyK3());
  const ModelRig rig(model);
  const ExpertCodec& codec = rig.container->manifest().codec;
  const Kernels& kernels = *Require(KernelsFor(Isa::kBest));
  const int64_t bytes = Forward::ScratchBytes(rig.config, codec, kernels, 2, {.max_rows = 256});
  BOOST_TEST(bytes > 0);
  BOOST_TEST(Forward::ScratchBytes(rig.config, codec, kernels, 4, {.max_rows = 256}) > bytes);
  BOOST_TEST(Forward::ScratchBytes(rig.config, codec, kernels, 2, {.max_rows = 512}) > bytes);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
