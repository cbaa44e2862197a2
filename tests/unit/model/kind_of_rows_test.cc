// SPDX-License-Identifier: Apache-2.0
//
// Rows are multiplied by the fast kernels of their kind everywhere: one block that took a token
// that is being written for a prompt's row, or any for exact ones, would give a right answer,
// slowly.

#include <boost/test/unit_test.hpp>

#include "support/kernel_case.h"
#include "support/model_rig.h"

namespace waste {
namespace {

// Calls of kernels, counted on their way to the machine's own.
struct Calls {
  int64_t f32_trunk = 0;  // of formats that have a fast kernel
  int64_t f32_expert = 0;
  int64_t trunk_words = 0;
  int64_t trunk_split = 0;
  int64_t expert_words = 0;
  int64_t tables = 0;
} calls;

const Kernels& Best() { return RequireKernels(Isa::kAvx512Vbmi); }

void CountedTrunkRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                      int64_t x_stride, int64_t batch, float* y, int64_t y_stride, float* scratch) {
  calls.f32_trunk += w.format == TrunkFormat::kQ4G || w.format == TrunkFormat::kQ8G;
  Best().trunk_rows(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
}

void CountedTrunkWords(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                       const TrunkInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                       float* scratch) {
  ++calls.trunk_words;
  Best().trunk_words(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
}

void CountedSplitRows(const TrunkMatrix& w, int64_t row_begin, int64_t row_end,
                      const uint8_t* inputs, int64_t batch, float* y, int64_t y_stride) {
  ++calls.trunk_split;
  Best().split_rows(w, row_begin, row_end, inputs, batch, y, y_stride);
}

void CountedExpertRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* x,
                       int64_t x_stride, int64_t batch, float* y, int64_t y_stride,
                       float* scratch) {
  ++calls.f32_expert;
  Best().expert_rows(w, row_begin, row_end, x, x_stride, batch, y, y_stride, scratch);
}

void CountedExpertWords(const ExpertMatrix& w, int64_t row_begin, int64_t row_end,
                        const ExpertInputs& inputs, int64_t batch, float* y, int64_t y_stride,
                        float* scratch) {
  ++calls.expert_words;
  Best().expert_words(w, row_begin, row_end, inputs, batch, y, y_stride, scratch);
}

void CountedTableRows(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
                      const uint8_t* table, const IndexChunks& next, bool is_first, float* sums) {
  ++calls.tables;
  Best().table_rows(w, row_begin, row_end, group, table, next, is_first, sums);
}

BOOST_AUTO_TEST_SUITE(kind_of_rows)

BOOST_AUTO_TEST_CASE(each_kind_has_its_kernels,
                     *boost::unit_test::precondition(HasIsa{Isa::kAvx512Vbmi})) {
  Kernels counted = Best();
  counted.trunk_rows = CountedTrunkRows;
  counted.trunk_words = CountedTrunkWords;
  counted.split_rows = CountedSplitRows;
  counted.expert_rows = CountedExpertRows;
  counted.expert_words = CountedExpertWords;
  counted.table_rows = CountedTableRows;
  TinyModelOptions dense = TinyKimiLinear();
  dense.first_moe_layer = 2;
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3(), dense}) {
    const TinyModel model(options);
    for (const bool fast : {true, false}) {
      ModelRig rig(model, {.kernels = &counted, .forward = {.fast = fast}});
      const auto tokens = RandomTokens(3, rig.config.vocab, 1);
      for (const bool is_prompt : {true, false}) {
        calls = Calls();
        rig.RunAlone(tokens, 1, is_prompt);
        BOOST_TEST((calls.f32_trunk > 0) == !fast);
        BOOST_TEST((calls.f32_expert > 0) == !fast);
        BOOST_TEST((calls.trunk_words > 0) == (fast && is_prompt));
        BOOST_TEST((calls.trunk_split > 0) == fast);  // of prompts, the last row's logits
        BOOST_TEST((calls.expert_words > 0) == (fast && is_prompt));
        BOOST_TEST((calls.tables > 0) == (fast && !is_prompt));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
