// SPDX-License-Identifier: Apache-2.0
//
// A session's state alone: what is kept where, and how it is committed, taken back and saved.
// Whether it then continues rightly is in forward_test.cc.

#include "model/state.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "support/model_rig.h"

namespace waste {
namespace {

ModelConfig ConfigOf(const TinyModelOptions& options) {
  Manifest manifest;
  manifest.arch = "kimi-k3";
  manifest.config = SyntheticConfig(options);
  for (int64_t layer = options.first_moe_layer; layer < options.layers; ++layer)
    manifest.layers[static_cast<int32_t>(layer)].experts = options.experts;
  return Require(ParseModelConfig(manifest, false));
}

int64_t StateFloats(const ModelConfig& c) { return c.kda.width() * c.kda.head_dim; }
int64_t ConvFloats(const ModelConfig& c) { return 3 * c.kda.width() * (c.kda.conv_size - 1); }

// Writes what a step would: every value of next, and the new rows of the caches.
void FakeStep(SessionState& state, const ModelConfig& config, int64_t rows, float value) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const float marked = value + static_cast<float>(layer);
    if (config.attention[layer] == AttentionKind::kKda) {
      const SessionState::Kda next = state.next(layer);
      std::fill_n(next.state, StateFloats(config), marked);
      std::fill_n(next.conv, ConvFloats(config), -marked);
    } else {
      const int64_t width = config.mla.cache_width();
      std::fill_n(state.latent(layer) + state.position() * width, rows * width, marked);
    }
  }
  state.Commit(rows);
}

void CheckCurrent(SessionState& state, const ModelConfig& config, float value) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (config.attention[layer] != AttentionKind::kKda) continue;
    const float marked = value == 0 ? 0 : value + static_cast<float>(layer);
    const SessionState::Kda current = state.current(layer);
    BOOST_TEST(current.state[0] == marked);
    BOOST_TEST(current.state[StateFloats(config) - 1] == marked);
    BOOST_TEST(current.conv[0] == -marked);
    BOOST_TEST(current.conv[ConvFloats(config) - 1] == -marked);
  }
}

struct Session {
  explicit Session(const TinyModelOptions& options = TinyK3(), int64_t context = 2000)
      : config(ConfigOf(options)), state(Require(SessionState::Create(config, context))) {}

  void Step(int64_t rows, float value) { FakeStep(*state, config, rows, value); }

  ModelConfig config;
  std::unique_ptr<SessionState> state;
};

BOOST_AUTO_TEST_SUITE(state)

BOOST_AUTO_TEST_CASE(new_session_is_empty_and_zero) {
  Session s;
  BOOST_TEST(s.state->position() == 0);
  BOOST_TEST(s.state->context() == 2000);
  CheckCurrent(*s.state, s.config, 0);
}

BOOST_AUTO_TEST_CASE(commit_makes_what_was_written_current_and_nothing_before_does) {
  Session s;
  std::fill_n(s.state->next(1).state, StateFloats(s.config), 5.0f);
  CheckCurrent(*s.state, s.config, 0);
  s.Step(3, 7);
  BOOST_TEST(s.state->position() == 3);
  CheckCurrent(*s.state, s.config, 7);
  s.Step(1, 8);
  CheckCurrent(*s.state, s.config, 8);
  BOOST_TEST(s.state->latent(0)[2 * s.config.mla.cache_width()] == 7.0f);
  BOOST_TEST(s.state->latent(0)[3 * s.config.mla.cache_width()] == 8.0f);
}

BOOST_AUTO_TEST_CASE(reset_is_a_new_session) {
  Session s;
  for (int i = 0; i < 10; ++i) s.Step(64, 3);
  s.state->Reset();
  BOOST_TEST(s.state->position() == 0);
  CheckCurrent(*s.state, s.config, 0);
  BOOST_TEST(s.state->RewindTo(0) == 0);
  s.Step(10, 4);
  BOOST_TEST(s.state->RewindTo(5) == 0);  // older snapshots are gone
}

BOOST_AUTO_TEST_CASE(rewind_finds_the_newest_snapshot_before_a_position) {
  struct {
    int64_t to;
    int64_t found;
    float value;
  } const kCases[] = {{1200, 1200, 15}, {1199, 1120, 14}, {1119, 840, 10.5f}, {840, 840, 10.5f},
                      {839, 560, 7},    {300, 280, 3.5f}, {279, 0, 0},        {0, 0, 0}};
  for (const auto& c : kCases) {
    Session s;
    for (int i = 1; i <= 30; ++i) s.Step(40, static_cast<float>(i) / 2);  // snapshots each 280
    BOOST_TEST_CONTEXT("to " << c.to) {
      BOOST_TEST(s.state->RewindTo(c.to) == c.found);
      BOOST_TEST(s.state->position() == c.found);
      CheckCurrent(*s.state, s.config, c.value);
      s.Step(40, 99);  // and it goes on from there
      CheckCurrent(*s.state, s.config, 99);
      BOOST_TEST(s.state->position() == c.found + 40);
    }
  }
}

BOOST_AUTO_TEST_CASE(snapshots_behind_a_rewind_are_forgotten) {
  Session s;
  for (int i = 0; i < 10; ++i) s.Step(64, 1);  // snapshots at 256 and 512
  BOOST_TEST(s.state->RewindTo(300) == 256);
  s.Step(300, 2);  // 556, a snapshot
  s.Step(10, 3);
  BOOST_TEST(s.state->RewindTo(560) == 556);
  CheckCurrent(*s.state, s.config, 2);
  BOOST_TEST(s.state->RewindTo(555) == 256);
  CheckCurrent(*s.state, s.config, 1);
}

BOOST_AUTO_TEST_CASE(model_without_recurrence_is_cut_anywhere) {
  TinyModelOptions options = TinyK3();
  options.mla_layers = {1, 2, 3, 4, 5, 6, 7};
  Session s(options);
  BOOST_TEST(SessionState::SnapshotCount(s.config, 2000) == 0);
  s.Step(64, 1);
  BOOST_TEST(s.state->RewindTo(13) == 13);
  BOOST_TEST(s.state->position() == 13);
}

BOOST_AUTO_TEST_CASE(snapshots_fit_their_budget_and_the_context) {
  ModelConfig small = ConfigOf(TinyK3());
  BOOST_TEST(SessionState::SnapshotCount(small, 255) == 0);
  BOOST_TEST(SessionState::SnapshotCount(small, 256) == 1);
  BOOST_TEST(SessionState::SnapshotCount(small, 2000) == 7);

  ModelConfig k3 = small;  // 69 layers of 96 heads: 464 MB a snapshot
  k3.attention.assign(69, AttentionKind::kKda);
  k3.kda.heads = 96;
  k3.kda.head_dim = 128;
  BOOST_TEST(SessionState::SnapshotCount(k3, 100000) == 1);
  BOOST_TEST(SessionState::Bytes(k3, 100000) == 3 * 69 * (96 * 128 * 128 + 3 * 96 * 128 * 3) * 4);

  k3.attention.assign(20, AttentionKind::kKda);  // Kimi-Linear: 44 MB
  k3.kda.heads = 32;
  BOOST_TEST(SessionState::SnapshotCount(k3, 100000) == 5);
}

BOOST_AUTO_TEST_CASE(only_the_newest_snapshots_are_kept) {
  Session s(TinyK3(), 600);                                            // two
  for (int i = 1; i <= 6; ++i) s.Step(32 * 3, static_cast<float>(i));  // 288, 576
  BOOST_TEST(s.state->RewindTo(400) == 288);
  s.Step(300, 9);  // 588
  BOOST_TEST(s.state->RewindTo(588) == 588);
  BOOST_TEST(s.state->RewindTo(587) == 288);
}

BOOST_AUTO_TEST_CASE(saved_session_comes_back_and_its_bytes_are_little_endian) {
  Session a, b;
  a.Step(5, 1.5f);
  a.Step(2, 2.5f);
  const auto bytes = SavedBytesOf(*a.state);
  const int64_t kda = 4 * 5 * (StateFloats(a.config) + ConvFloats(a.config));
  BOOST_TEST(static_cast<int64_t>(bytes.size()) == kda + 4 * 2 * 7 * a.config.mla.cache_width());
  BOOST_CHECK((std::vector<uint8_t>(bytes.begin(), bytes.begin() + 4) ==
               std::vector<uint8_t>{0, 0, 0xC0, 0x3F}));  // 1.5, the first latent

  b.Step(300, 9);  // something to be overwritten, a snapshot included
  Require(b.state->LoadFrom(bytes, 7));
  BOOST_TEST(b.state->position() == 7);
  CheckCurrent(*b.state, b.config, 2.5f);
  BOOST_TEST((SavedBytesOf(*b.state) == bytes));
  BOOST_TEST(b.state->RewindTo(6) == 0);
}

BOOST_AUTO_TEST_CASE(saved_session_that_does_not_fit_is_refused_and_changes_nothing) {
  Session a, b(TinyK3(), 6);
  a.Step(7, 1);
  const auto bytes = SavedBytesOf(*a.state);
  b.Step(2, 5);
  const auto before = SavedBytesOf(*b.state);
  const std::span<const uint8_t> all(bytes);
  BOOST_CHECK(b.state->LoadFrom(all, 7).code() == Code::kCorrupt);  // beyond its context
  BOOST_CHECK(b.state->LoadFrom(all, 6).code() == Code::kCorrupt);
  BOOST_CHECK(b.state->LoadFrom(all, -1).code() == Code::kCorrupt);
  BOOST_CHECK(b.state->LoadFrom({}, 0).code() == Code::kCorrupt);
  BOOST_CHECK(a.state->LoadFrom(all.first(all.size() - 1), 7).code() == Code::kCorrupt);
  BOOST_CHECK(a.state->LoadFrom(all, 8).code() == Code::kCorrupt);
  BOOST_TEST((SavedBytesOf(*b.state) == before));
  BOOST_TEST((SavedBytesOf(*a.state) == bytes));
}

BOOST_AUTO_TEST_CASE(copy_is_independent_and_takes_the_snapshots_along) {
  Session a, b(TinyK3(), 900), small(TinyK3(), 700);
  for (int i = 1; i <= 10; ++i) a.Step(64, static_cast<float>(i));
  b.Step(3, 77);
  b.state->CopyFrom(*a.state);
  small.state->CopyFrom(*a.state);
  BOOST_TEST((SavedBytesOf(*b.state) == SavedBytesOf(*a.state)));
  const auto before = SavedBytesOf(*a.state);
  b.Step(64, 20);
  BOOST_TEST((SavedBytesOf(*a.state) == before));
  BOOST_TEST(b.state->RewindTo(500) == 256);
  CheckCurrent(*b.state, b.config, 4);
  BOOST_TEST(small.state->RewindTo(600) == 512);
  CheckCurrent(*small.state, small.config, 8);
}

BOOST_AUTO_TEST_CASE(session_of_impossible_size_is_refused) {
  const ModelConfig config = ConfigOf(TinyK3());
  for (const int64_t context : {int64_t{0}, int64_t{-1}, int64_t{INT32_MAX} + 1})
    BOOST_CHECK(SessionState::Create(config, context).status().code() == Code::kArgument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
