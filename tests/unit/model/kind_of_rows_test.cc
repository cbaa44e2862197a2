// SPDX-License-Identifier: Apache-2.0
//
// A token that is being written is multiplied by the fast kernels everywhere: one block that took
// it for a prompt's row would give a right answer, slowly.

#include <boost/test/unit_test.hpp>

#include "support/kernel_case.h"
#include "support/model_rig.h"

namespace waste {
namespace {

// Calls of the f32 kernels, counted on their way to the machine's own.
struct SlowCalls {
  int64_t trunk = 0;  // of formats that have a fast kernel
  int64_t expert = 0;
} slow;

const Kernels& Best() { return RequireKernels(Isa::kAvx512Vbmi); }

void CountedTrunkRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                      int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch) {
  slow.trunk += w.format == TrunkFormat::kQ4G || w.format == TrunkFormat::kQ8G;
  Best().trunk_rows(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
}

void CountedExpertRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                       int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                       float* scratch) {
  ++slow.expert;
  Best().expert_rows(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
}

BOOST_AUTO_TEST_SUITE(kind_of_rows)

BOOST_AUTO_TEST_CASE(only_experts_of_prompts_are_multiplied_in_f32,
                     *boost::unit_test::precondition(HasIsa{Isa::kAvx512Vbmi})) {
  Kernels counted = Best();
  counted.trunk_rows = CountedTrunkRows;
  counted.expert_rows = CountedExpertRows;
  TinyModelOptions dense = TinyKimiLinear();
  dense.first_moe_layer = 2;
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3(), dense}) {
    const TinyModel model(options);
    for (const bool fast : {true, false}) {
      ModelRig rig(model, {.kernels = &counted, .forward = {.fast = fast}});
      const auto tokens = RandomTokens(3, rig.config.vocab, 1);
      for (const bool is_prompt : {true, false}) {
        slow = SlowCalls();
        rig.RunAlone(tokens, 1, is_prompt);
        BOOST_TEST((slow.trunk > 0) == !fast);
        BOOST_TEST((slow.expert > 0) == (is_prompt || !fast));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
