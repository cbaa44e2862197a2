// SPDX-License-Identifier: Apache-2.0

#include "convert/hf_names.h"

#include <boost/test/unit_test.hpp>

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(hf_names)

BOOST_AUTO_TEST_CASE(deep_seek_names_become_those_of_the_kimi_releases) {
  const struct {
    const char* source;
    const char* container;
  } cases[] = {
      {"model.layers.1.mlp.gate.weight", "model.layers.1.block_sparse_moe.gate.weight"},
      {"model.layers.1.mlp.gate.e_score_correction_bias",
       "model.layers.1.block_sparse_moe.gate.e_score_correction_bias"},
      {"model.layers.1.mlp.shared_experts.up_proj.weight",
       "model.layers.1.block_sparse_moe.shared_experts.up_proj.weight"},
      {"model.layers.1.mlp.experts.12.gate_proj.weight",
       "model.layers.1.block_sparse_moe.experts.12.w1.weight"},
      {"model.layers.1.mlp.experts.12.up_proj.weight",
       "model.layers.1.block_sparse_moe.experts.12.w3.weight"},
      {"model.layers.1.mlp.experts.12.down_proj.weight",
       "model.layers.1.block_sparse_moe.experts.12.w2.weight"},
      // Unchanged: a dense layer's, and those that have their names already.
      {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.gate_proj.weight"},
      {"model.layers.1.block_sparse_moe.experts.3.w2.weight",
       "model.layers.1.block_sparse_moe.experts.3.w2.weight"},
      {"language_model.model.norm.weight", "language_model.model.norm.weight"},
  };
  for (const auto& c : cases) BOOST_TEST(ContainerName(c.source) == c.container);
}

BOOST_AUTO_TEST_CASE(expert_names_are_read_whole_or_not_at_all) {
  const auto name = ParseExpertName(
      "language_model.model.layers.7.block_sparse_moe.experts.31.w3.weight", "language_model.");
  BOOST_REQUIRE(name.has_value());
  BOOST_TEST(name->layer == 7);
  BOOST_TEST(name->expert == 31);
  BOOST_TEST(name->kind == 1);
  for (const char* wrong :
       {"model.layers.7.block_sparse_moe.experts.31.w4.weight",
        "model.layers.7.block_sparse_moe.experts.31.w1.weight_packed",
        "model.layers.7.block_sparse_moe.experts.31.w1.bias",
        "model.layers.7.block_sparse_moe.experts.-1.w1.weight",
        "model.layers.7.block_sparse_moe.experts.01.w1.weight",
        "model.layers.7.block_sparse_moe.experts.4294967296.w1.weight",
        "model.layers..block_sparse_moe.experts.1.w1.weight",
        "model.layers.7.block_sparse_moe.experts.gate_up_proj", "model.layers.7",
        "other.model.layers.7.block_sparse_moe.experts.31.w1.weight", ""}) {
    BOOST_TEST_CONTEXT(wrong) BOOST_TEST(!ParseExpertName(wrong, "").has_value());
  }
}

BOOST_AUTO_TEST_CASE(shared_experts_are_no_routed_experts) {
  BOOST_TEST(!IsExpertName("model.layers.1.block_sparse_moe.shared_experts.up_proj.weight"));
  BOOST_TEST(IsExpertName("model.layers.1.block_sparse_moe.experts.0.w1.weight"));
}

BOOST_AUTO_TEST_CASE(the_tower_and_its_projector_are_vision) {
  BOOST_TEST(IsVisionName("vision_tower.patch_embed.proj.weight"));
  BOOST_TEST(IsVisionName("mm_projector.proj.0.weight"));
  BOOST_TEST(!IsVisionName("language_model.model.norm.weight"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
