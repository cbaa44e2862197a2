// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <fstream>
#include <iterator>

#include "container/verify.h"
#include "convert/synthesize.h"
#include "model/config.h"
#include "support/temporary_folder.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

SyntheticModel Small(const char* name) {
  return Require(CutDown(Require(SyntheticModelNamed(name)), 2, 0));
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

BOOST_AUTO_TEST_SUITE(synthesize)

BOOST_AUTO_TEST_CASE(a_container_is_sound_and_says_its_shape) {
  TemporaryPath folder;
  Progress progress;
  Require(Synthesize(Require(SyntheticModelNamed("mini")), folder.path(), progress));
  BOOST_TEST(progress.done() == progress.total());
  const auto container = Require(Container::Open(folder.path(), IoMode::kBuffered));
  BOOST_TEST(container->manifest().layers.size() == 7);
  const auto config = Require(ParseModelConfig(container->manifest(), false));
  BOOST_TEST(config.hidden == 192);
  BOOST_TEST(config.moe.experts == 32);
  Require(container->SetExpertDims({config.moe.inner, config.expert_outer()}));
  Progress verified;
  Require(VerifyContainer(*container, verified));
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_bytes) {
  std::string first;
  for (const uint32_t seed : {1u, 1u, 2u}) {
    TemporaryPath folder;
    Progress progress;
    SyntheticModel model = Small("mini");
    model.seed = seed;
    Require(Synthesize(model, folder.path(), progress));
    const std::string bank = Bytes(folder.path() + "/experts-L1.bin");
    BOOST_TEST(!bank.empty());
    if (first.empty()) first = bank;
    BOOST_TEST((bank == first) == (seed == 1));
  }
}

// A matrix whose weights lean to one side makes all tokens alike after a few layers, and then they
// all choose the same experts.
BOOST_AUTO_TEST_CASE(quantised_weights_lean_to_no_side) {
  TemporaryPath folder;
  Progress progress;
  Require(Synthesize(Small("mini"), folder.path(), progress));
  const auto container = Require(Container::Open(folder.path(), IoMode::kBuffered));
  int64_t matrices = 0;
  for (const TrunkEntry& entry : container->manifest().trunk) {
    if (entry.format != TrunkFormat::kQ4G) continue;
    ++matrices;
    std::vector<float> row(static_cast<size_t>(entry.shape[1]));
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < entry.shape[0]; ++r) {
      Require(container->ReadTrunkRow(entry, r, row));
      for (const float weight : row) {
        sum += weight;
        squares += weight * weight;
      }
    }
    const double count = static_cast<double>(entry.shape[0] * entry.shape[1]);
    BOOST_TEST_CONTEXT(entry.name)
    BOOST_TEST(std::abs(sum / count) < 0.03 * std::sqrt(squares / count));  // of one sign: 0.108
  }
  BOOST_TEST(matrices > 0);
}

BOOST_AUTO_TEST_CASE(a_cut_keeps_the_width) {
  const SyntheticModel whole = Require(SyntheticModelNamed("k3"));
  const SyntheticModel cut = Require(CutDown(whole, 5, 20));
  BOOST_TEST(cut.hidden == whole.hidden);
  BOOST_TEST(cut.layers == 5);
  BOOST_TEST(cut.experts == 20);
  BOOST_TEST(cut.mla_layers == (std::vector<int64_t>{4}), boost::test_tools::per_element());
  BOOST_TEST(whole.mla_layers.size() == 24);
  for (const auto& [layers, experts] : {std::pair{94, 0}, {-1, 0}, {0, 15}, {0, 897}})
    BOOST_CHECK(CutDown(whole, layers, experts).status().code() == Code::kArgument);
  BOOST_CHECK(SyntheticModelNamed("k2").status().code() == Code::kArgument);
}

BOOST_AUTO_TEST_CASE(a_cancelled_one_leaves_nothing) {
  TemporaryPath folder;
  Progress progress;
  progress.Cancel();
  BOOST_CHECK(Synthesize(Small("mini"), folder.path(), progress).code() == Code::kCancelled);
  BOOST_TEST(!FileExists(folder.path()));
  BOOST_TEST(!FileExists(folder.path() + ".tmp"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
