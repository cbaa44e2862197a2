// SPDX-License-Identifier: Apache-2.0

#include "convert/hf_config.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/temporary_folder.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(hf_config)

Result<HfConfig> Read(const std::string& text) {
  const TemporaryFolder folder;
  folder.Write("config.json", text);
  return ReadHfConfig(folder.path());
}

BOOST_AUTO_TEST_CASE(text_config_is_kept_word_for_word_and_the_rest_is_outer) {
  const auto config = Read(R"({"architectures":["KimiK3ForConditionalGeneration"],"z":1,)"
                           R"("text_config":{"b":2.50,"a":null},"y":[1]})");
  BOOST_REQUIRE(config.ok());
  BOOST_TEST(config->arch == "kimi-k3");
  BOOST_TEST(config->config.dump() ==
             R"({"b":2.5,"a":null,"_outer":{"architectures":["KimiK3ForConditionalGeneration"],)"
             R"("z":1,"y":[1]}})");
}

BOOST_AUTO_TEST_CASE(a_config_without_text_config_is_the_text_config) {
  const auto config = Read(R"({"architectures":["KimiLinearForCausalLM"],"hidden_size":8})");
  BOOST_REQUIRE(config.ok());
  BOOST_TEST(config->arch == "kimi-linear");
  BOOST_TEST(config->config["hidden_size"] == 8);
  BOOST_TEST(config->config["_outer"]["hidden_size"] == 8);
}

BOOST_AUTO_TEST_CASE(aliases_are_added_only_where_the_name_is_missing) {
  const auto config = Read(
      R"({"model_type":"x","n_routed_experts":4,"num_experts_per_tok":2,"num_experts_per_token":3,)"
      R"("n_shared_experts":1,"norm_topk_prob":true})");
  BOOST_REQUIRE(config.ok());
  BOOST_TEST(config->arch == "x");
  BOOST_TEST(config->config["num_experts"] == 4);
  BOOST_TEST(config->config["num_experts_per_token"] == 3);
  BOOST_TEST(config->config["num_shared_experts"] == 1);
  BOOST_TEST(config->config["moe_renormalize"] == true);
}

BOOST_AUTO_TEST_CASE(a_false_norm_topk_prob_sets_nothing) {
  const auto config = Read(R"({"model_type":"x","norm_topk_prob":false})");
  BOOST_REQUIRE(config.ok());
  BOOST_TEST(!config->config.contains("moe_renormalize"));
}

BOOST_AUTO_TEST_CASE(what_is_no_config_is_refused_with_its_path) {
  for (const char* text :
       {"", "[]", "{", R"({"hidden_size":1})", R"({"architectures":[]})",
        R"({"architectures":["KimiK3X"],"text_config":[]})", R"({"a":1,"a":2,"model_type":"x"})"}) {
    BOOST_TEST_CONTEXT(text) {
      const auto config = Read(text);
      BOOST_TEST(static_cast<int>(config.status().code()) == static_cast<int>(Code::kFormat));
      BOOST_TEST(config.status().message().find("config.json") != std::string::npos);
    }
  }
  const TemporaryFolder empty;
  BOOST_TEST(static_cast<int>(ReadHfConfig(empty.path()).status().code()) ==
             static_cast<int>(Code::kIo));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
