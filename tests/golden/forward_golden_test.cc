// SPDX-License-Identifier: Apache-2.0
//
// The forward pass gives what transformers (Kimi-Linear) and mlx-lm (Kimi K3) computed on the same
// dequantised weights: hidden state after every layer and logits, for every instruction set of this
// machine, in chunks of 1, 2, 7 and 64, and after save and restore. tests/oracle/golden.py wrote
// the files of golden/forward and says what they hold.

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "container/container.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/forward.h"
#include "model/state.h"
#include "model/weights.h"
#include "os/system.h"
#include "parallel/thread_pool.h"
#include "support/resident_experts.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

namespace fs = std::filesystem;

// Written out, so that a folder that is missing is a failure.
constexpr std::array kCases = {"linear-mla-first", "linear-small", "k3-mla-first",
                               "k3-no-latent",     "k3-plain",     "k3-small"};

fs::path Folder(const std::string& name) {
  return fs::path(WASTE_SOURCE_DIR) / "tests" / "golden" / "forward" / name;
}

template <typename T>
std::vector<T> ReadArray(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(file, path << " cannot be read");
  std::vector<T> values(fs::file_size(path) / sizeof(T));
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

// What the oracle computed: `states` x [positions, width], the last state being the logits.
struct Expected {
  explicit Expected(const fs::path& folder)
      : tokens(ReadArray<int32_t>(folder / "tokens.i32")),
        values(ReadArray<float>(folder / "expected.f32")) {
    const auto json = nlohmann::json::parse(std::ifstream(folder / "expected.json"));
    positions = json.at("positions").get<std::vector<int64_t>>();
    largest = json.at("largest").get<std::vector<double>>();
    limit = json.at("limit").get<double>();
    layers = json.at("layers").get<int64_t>();
    hidden = json.at("hidden").get<int64_t>();
    vocab = json.at("vocab").get<int64_t>();
    const int64_t count = static_cast<int64_t>(positions.size()) * (layers * hidden + vocab);
    BOOST_REQUIRE_EQUAL(static_cast<int64_t>(values.size()), count);
    BOOST_REQUIRE_EQUAL(static_cast<int64_t>(largest.size()), layers + 1);
  }

  // Of state `i` (a layer, or the logits) at the p-th position.
  std::span<const float> row(int64_t i, int64_t p) const {
    const int64_t count = static_cast<int64_t>(positions.size());
    const int64_t width = i < layers ? hidden : vocab;
    return std::span(values).subspan(i * count * hidden + p * width, width);
  }

  std::vector<int32_t> tokens;
  std::vector<float> values;
  std::vector<int64_t> positions;
  std::vector<double> largest;  // of each state, over all tokens
  double limit = 0;             // of the largest
  int64_t layers = 0, hidden = 0, vocab = 0;
};

struct Run {
  int64_t chunk;
  int32_t threads;
  int64_t restore_at;  // tokens after which the session is saved and restored; 0: never
};
constexpr std::array kRuns = {Run{1, 1, 0},  Run{2, 1, 0},  Run{7, 2, 0},
                              Run{64, 1, 0}, Run{7, 1, 99}, Run{64, 2, 64}};

// A golden model, opened.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : expected_(Folder(name)),
        container_(
            Require(Container::Open((Folder(name) / "container").string(), IoMode::kBuffered))),
        config_(Require(ParseModelConfig(container_->manifest(), container_->chat().has_value()))) {
    Require(container_->SetExpertDims({config_.moe.inner, config_.expert_outer()}));
    Progress progress;
    weights_ = Require(Weights::Load(*container_, config_, progress));
    experts_ = std::make_unique<ResidentExperts>(*container_);
  }

  // The largest difference of any state at any position, of that state's limit.
  double Compare(Isa isa, const Run& run) {
    const Kernels& kernels = *Require(KernelsFor(isa));
    const auto pool = Require(ThreadPool::Create(run.threads));
    const int64_t count = static_cast<int64_t>(expected_.tokens.size());
    const auto forward =
        Require(Forward::Create(config_, *weights_, *container_, kernels, *pool, *experts_, {}));
    auto state = Require(SessionState::Create(config_, count));
    double worst = 0;
    int64_t begin = 0, floats_seen = 0;
    forward->set_hidden_observer([&](int64_t layer, std::span<const float> rows) {
      worst = std::max(worst, Distance(layer, begin, rows));
      floats_seen += static_cast<int64_t>(rows.size());
    });
    while (begin < count) {
      if (begin == run.restore_at && begin > 0) state = Restored(*state);
      const int64_t end = begin < run.restore_at ? run.restore_at : count;
      const int64_t rows = std::min(run.chunk, end - begin);
      std::vector<float> logits(static_cast<size_t>(rows * config_.vocab));
      std::array sessions = {
          SessionRows{state.get(), std::span(expected_.tokens).subspan(begin, rows), logits}};
      Require(forward->Step(sessions, [] { return false; }));
      worst = std::max(worst, Distance(config_.layers, begin, logits));
      begin += rows;
    }
    BOOST_TEST(floats_seen == count * config_.layers * config_.hidden);
    return worst;
  }

 private:
  // Rows of state `i` that start at token `begin`, against the positions that are kept.
  double Distance(int64_t i, int64_t begin, std::span<const float> rows) const {
    const int64_t width = i < expected_.layers ? expected_.hidden : expected_.vocab;
    const int64_t count = static_cast<int64_t>(rows.size()) / width;
    double largest = 0;
    for (size_t p = 0; p < expected_.positions.size(); ++p) {
      const int64_t row = expected_.positions[p] - begin;
      if (row < 0 || row >= count) continue;
      const auto oracle = expected_.row(i, static_cast<int64_t>(p));
      for (int64_t j = 0; j < width; ++j) {
        const double difference = std::abs(double{rows[row * width + j]} - oracle[j]);
        largest = std::max(largest, std::isfinite(difference) ? difference : HUGE_VAL);
      }
    }
    return largest / (expected_.largest[i] * expected_.limit);
  }

  std::unique_ptr<SessionState> Restored(const SessionState& state) const {
    std::vector<uint8_t> bytes(static_cast<size_t>(state.SavedBytes()));
    state.SaveTo(bytes);
    auto other = Require(SessionState::Create(config_, state.context()));
    Require(other->LoadFrom(bytes, state.position()));
    return other;
  }

  Expected expected_;
  std::unique_ptr<Container> container_;
  ModelConfig config_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<ResidentExperts> experts_;
};

void CompareAll(Isa isa) {
  for (const char* name : kCases) {
    Golden golden(name);
    for (const Run& run : kRuns) {
      BOOST_TEST_CONTEXT(name << ", chunks of " << run.chunk << ", " << run.threads
                              << " threads, restored at " << run.restore_at) {
        const double worst = golden.Compare(isa, run);
        BOOST_TEST(worst <= 1.0);
      }
    }
  }
}

template <Isa isa>
boost::test_tools::assertion_result MachineHas(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result has(CpuHas(isa) && KernelsFor(isa).ok());
  if (!has) has.message() << "no " << IsaName(isa) << " on this machine or in this build";
  return has;
}

namespace utf = boost::unit_test;

BOOST_AUTO_TEST_SUITE(forward_golden)

BOOST_AUTO_TEST_CASE(scalar_kernels_agree_with_the_oracle, *boost::unit_test::label("slow")) {
  CompareAll(Isa::kScalar);
}

BOOST_AUTO_TEST_CASE(avx2_kernels_agree_with_the_oracle,
                     *utf::precondition(MachineHas<Isa::kAvx2>)) {
  CompareAll(Isa::kAvx2);
}

BOOST_AUTO_TEST_CASE(avx512_kernels_agree_with_the_oracle,
                     *utf::precondition(MachineHas<Isa::kAvx512>)) {
  CompareAll(Isa::kAvx512);
}

BOOST_AUTO_TEST_CASE(neon_kernels_agree_with_the_oracle,
                     *utf::precondition(MachineHas<Isa::kNeon>)) {
  CompareAll(Isa::kNeon);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
