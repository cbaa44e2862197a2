// SPDX-License-Identifier: Apache-2.0
//
// The forward pass against the formulas in double (support/naive_forward.h), and against itself:
// what may change speed only must not change a bit.

#include "model/forward.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/model_rig.h"
#include "support/naive_forward.h"

namespace waste {
namespace {

constexpr int64_t kPromptMax = 130;  // two whole steps and a part of one
constexpr double kTolerance = 1e-5;  // of the largest value

struct Family {
  const char* name;
  TinyModelOptions options;
  std::vector<int64_t> chunks;
};

// Every switch of the config both ways, in one model or another.
std::vector<Family> Families() {
  TinyModelOptions odd = TinyKimiLinear();  // one of everything
  odd.layers = 3;
  odd.mla_layers = {2};
  odd.conv_size = 1;
  odd.kda_heads = 1;
  odd.kda_dim = 5;
  odd.heads = 1;
  odd.rope = 0;
  odd.experts = 1;
  odd.top_k = 1;
  odd.shared = 0;
  odd.first_moe_layer = 0;
  odd.router_bias = false;
  odd.codec = {.kind = IndexKind::kPacked6, .stages = 4, .entries = 64};
  TinyModelOptions bare_k3 = TinyK3();
  bare_k3.latent_norm = false;
  bare_k3.output_gate = false;
  bare_k3.q_lora = 0;
  bare_k3.attn_res = 1;
  bare_k3.mla_layers = {};
  bare_k3.layers = 3;
  TinyModelOptions all_mla = TinyK3();
  all_mla.layers = 3;
  all_mla.mla_layers = {1, 2, 3};
  all_mla.first_moe_layer = 3;  // and all dense
  all_mla.attn_res = 2;
  return {{"kimi-linear", TinyKimiLinear(), {1, 2, 7, 16, 17, 64}},
          {"kimi-k3", TinyK3(), {1, 2, 7, 16, 17, 64}},
          {"one of everything", odd, {1, 64}},
          {"k3 without options", bare_k3, {1, 64}},
          {"all mla, all dense", all_mla, {1, 64}}};
}

// A layer of each kind: for what has to be run very often.
std::vector<TinyModelOptions> ShortModels() {
  TinyModelOptions linear = TinyKimiLinear(), k3 = TinyK3();
  linear.layers = 2;
  linear.mla_layers = {2};
  k3.layers = 3;
  k3.mla_layers = {2};
  k3.attn_res = 2;
  return {linear, k3};
}

double LargestOf(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// The largest difference, of the largest expected value.
double Difference(std::span<const float> got, std::span<const double> expected) {
  BOOST_REQUIRE(got.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest, std::fabs(got[i] - expected[i]));
  return largest / LargestOf(expected);
}

BOOST_AUTO_TEST_SUITE(forward)

BOOST_AUTO_TEST_CASE(every_layer_and_the_logits_agree_with_the_formulas_for_every_chunk,
                     *boost::unit_test::label("slow")) {
  for (const Family& family : Families()) {
    const TinyModel model(family.options);
    ModelRig rig(model);
    const auto tokens = RandomTokens(100, rig.config.vocab, 7);
    const auto expected = NaiveForward(*rig.container, rig.config).Run(tokens);
    for (const int64_t chunk : family.chunks) {
      std::vector<std::vector<float>> hidden(static_cast<size_t>(rig.config.layers));
      rig.forward->set_hidden_observer([&](int64_t layer, std::span<const float> rows) {
        hidden[layer].insert(hidden[layer].end(), rows.begin(), rows.end());
      });
      const auto logits = rig.RunAlone(tokens, chunk);
      BOOST_TEST_CONTEXT(family.name << ", chunks of " << chunk) {
        for (int64_t layer = 0; layer < rig.config.layers; ++layer) {
          BOOST_TEST_CONTEXT("layer " << layer) {
            BOOST_TEST(Difference(hidden[layer], expected.hidden[layer]) < kTolerance);
          }
        }
        BOOST_TEST(Difference(logits, expected.logits) < kTolerance);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_prompt_length_agrees_with_the_formulas,
                     *boost::unit_test::label("slow")) {
  for (const TinyModelOptions& options : ShortModels()) {
    const TinyModel model(options);
    ModelRig rig(model, {.isa = Isa::kBest});
    const auto tokens = RandomTokens(kPromptMax + 1, rig.config.vocab, 8);
    const auto expected = NaiveForward(*rig.container, rig.config).Run(tokens);
    for (int64_t length = 1; length <= kPromptMax; ++length) {
      const auto state = rig.NewState();
      const auto prompt = std::span(tokens).first(static_cast<size_t>(length));
      rig.Run(*state, prompt, 64);
      const auto next = rig.Run(*state, std::span(tokens).subspan(length, 1), 1);
      const auto wanted =
          std::span(expected.logits).subspan(length * rig.config.vocab, rig.config.vocab);
      BOOST_TEST_CONTEXT("length " << length) { BOOST_TEST(Difference(next, wanted) < kTolerance); }
    }
  }
}

BOOST_AUTO_TEST_CASE(instruction_sets_agree_with_the_formulas, *boost::unit_test::label("slow")) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (!KernelsFor(isa).ok()) continue;  // tests/kernel counts what this machine lacks
    for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
      const TinyModel model(options);
      ModelRig rig(model, {.isa = isa});
      const auto tokens = RandomTokens(70, rig.config.vocab, 9);
      const auto expected = NaiveForward(*rig.container, rig.config).Run(tokens);
      for (const int64_t chunk : {1, 7, 64})
        BOOST_TEST(Difference(rig.RunAlone(tokens, chunk), expected.logits) < kTolerance);
    }
  }
}

BOOST_AUTO_TEST_CASE(where_a_prompt_is_cut_into_steps_changes_no_bit,
                     *boost::unit_test::label("slow")) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    for (const Isa isa : {Isa::kScalar, Isa::kBest}) {
      ModelRig small(model, {.isa = isa, .forward = {.max_rows = 256, .fast = true}});
      ModelRig large(model, {.isa = isa, .forward = {.max_rows = 512, .fast = true}});
      const auto tokens = RandomTokens(451, small.config.vocab, 10);
      // The last row comes alone where steps have 16, 64 or 256 rows.
      for (const size_t length : {size_t{449}, size_t{257}}) {
        const auto text = std::span(tokens).first(length);
        const auto expected = large.RunAlone(text, 512);
        for (const int64_t chunk : {16, 64, 256})
          BOOST_TEST(small.RunAlone(text, chunk) == expected, "steps of " << chunk);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_that_begins_anywhere_may_be_cut_where_tiles_end) {
  const TinyModel model(TinyKimiLinear());
  ModelRig rig(model, {.isa = Isa::kBest, .forward = {.max_rows = 1024}});
  const auto tokens = RandomTokens(505, rig.config.vocab, 10);
  const auto whole = rig.NewState(), parts = rig.NewState();
  for (SessionState* state : {whole.get(), parts.get()})
    rig.Run(*state, std::span(tokens).first(5), 1, false);
  const auto prompt = std::span(tokens).subspan(5);
  const auto expected = rig.Run(*whole, prompt, 1024);
  auto got = rig.Run(*parts, prompt.first(251), 1024);
  const auto rest = rig.Run(*parts, prompt.subspan(251), 1024);
  got.insert(got.end(), rest.begin(), rest.end());
  BOOST_TEST(got == expected);
}

// Faster arithmetic changes a tiny model's logits by little, except where two experts are so near a
// tie that it decides for the other: of 60 tokens that may happen to one.
BOOST_AUTO_TEST_CASE(fast_arithmetic_stays_near_the_formulas, *boost::unit_test::label("slow")) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    ModelRig rig(model, {.threads = 2, .isa = Isa::kBest, .forward = {.fast = true}});
    const auto tokens = RandomTokens(60, rig.config.vocab, 31);
    const auto expected = NaiveForward(*rig.container, rig.config).Run(tokens);
    const auto got = rig.RunAlone(tokens, 1, false);
    const auto vocab = static_cast<size_t>(rig.config.vocab);
    int64_t far = 0;
    for (size_t t = 0; t < tokens.size(); ++t)
      far += Difference(std::span(got).subspan(t * vocab, vocab),
                        std::span(expected.logits).subspan(t * vocab, vocab)) > 7e-3;
    BOOST_TEST(far <= 1);
  }
}

BOOST_AUTO_TEST_CASE(threads_and_the_order_of_arrival_change_no_bit) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    for (const int64_t chunk : {1, 5, 64}) {
      ModelRig alone(model, {.isa = Isa::kBest, .forward = {.fast = true}});
      const auto tokens = RandomTokens(chunk == 64 ? 70 : 23, alone.config.vocab, 11);
      const auto expected = alone.RunAlone(tokens, chunk, chunk > 1);
      for (int32_t threads = 1; threads <= 4; ++threads) {
        for (const int64_t most : {1, 1000}) {
          ModelRig rig(model, {.threads = threads,
                               .isa = Isa::kBest,
                               .max_experts = most,
                               .scatter = most > 1,
                               .forward = {.fast = true}});
          BOOST_TEST_CONTEXT(threads << " threads, " << most << " at a time, chunk " << chunk) {
            BOOST_TEST(rig.RunAlone(tokens, chunk, chunk > 1) == expected);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sessions_that_share_a_step_get_the_bits_they_would_get_alone) {
  // Rows of each session in a step: prompts, and tokens that are being written.
  const std::vector<int64_t> counts = {21, 1, 16, 1, 15, 0, 9, 1};
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    ModelRig rig(model, {.threads = 2, .isa = Isa::kBest, .forward = {.fast = true}});
    std::vector<std::unique_ptr<SessionState>> states, alone;
    std::vector<std::vector<int32_t>> texts;
    for (size_t i = 0; i < counts.size(); ++i) {
      states.push_back(rig.NewState());
      alone.push_back(rig.NewState());
      texts.push_back(RandomTokens(3 * 21, rig.config.vocab, static_cast<uint32_t>(20 + i)));
    }
    for (int64_t round = 0; round < 3; ++round) {
      std::vector<std::vector<float>> logits(counts.size()), expected(counts.size());
      std::vector<SessionRows> step;
      for (size_t i = 0; i < counts.size(); ++i) {
        const auto rows = std::span(texts[i]).subspan(round * counts[i], counts[i]);
        expected[i] = rig.Run(*alone[i], rows, 64, counts[i] > 1);
        logits[i].resize(expected[i].size());
        step.push_back({states[i].get(), rows, logits[i], counts[i] > 1});
      }
      Require(rig.forward->Step(step, {}));
      for (size_t i = 0; i < counts.size(); ++i) {
        BOOST_TEST(logits[i] == expected[i]);
        BOOST_TEST(SavedBytesOf(*states[i]) == SavedBytesOf(*alone[i]));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_session_that_has_stopped_when_the_step_ends_is_as_it_was) {
  const TinyModel model(TinyK3());
  ModelRig rig(model);
  const auto tokens = RandomTokens(9, rig.config.vocab, 15);
  const auto staying = rig.NewState(), leaving = rig.NewState();
  rig.Run(*leaving, tokens, 64);
  const auto before = SavedBytesOf(*leaving);
  const std::function<bool()> stay = [] { return false; }, leave = [] { return true; };
  SessionRows step[] = {{leaving.get(), tokens, {}, true, &leave},
                        {staying.get(), tokens, {}, true, &stay}};
  Require(rig.forward->Step(step, {}));
  BOOST_TEST(!step[0].committed);
  BOOST_TEST(step[1].committed);
  BOOST_TEST(SavedBytesOf(*leaving) == before);
  BOOST_TEST(leaving->position() == 9);
  BOOST_TEST(SavedBytesOf(*staying) == before);
}

BOOST_AUTO_TEST_CASE(only_the_logits_asked_for_are_written_and_they_are_the_last) {
  const TinyModel model(TinyK3());
  ModelRig rig(model);
  const auto tokens = RandomTokens(20, rig.config.vocab, 12);
  const auto all = rig.RunAlone(tokens, 20);
  for (const int64_t n : {0, 1, 3, 20}) {
    const auto state = rig.NewState();
    std::vector<float> logits(static_cast<size_t>(n * rig.config.vocab));
    SessionRows step{state.get(), tokens, logits};
    Require(rig.forward->Step({&step, 1}, {}));
    BOOST_TEST(logits == std::vector<float>(all.end() - n * rig.config.vocab, all.end()),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(each_expert_is_fetched_once_for_all_rows_of_a_step) {
  const TinyModel model(TinyK3());
  ModelRig rig(model);
  rig.RunAlone(RandomTokens(64, rig.config.vocab, 13), 64);
  const int64_t moe_layers = rig.config.layers - rig.config.first_moe_layer;
  BOOST_TEST(rig.experts.calls == moe_layers);
  BOOST_TEST(rig.experts.fetched <= moe_layers * rig.config.moe.experts);
}

// Each way of failing in the middle, at each place where it can: the state is as before, and the
// same step run again gives what it should have.
BOOST_AUTO_TEST_CASE(failed_or_cancelled_step_leaves_no_trace) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    ModelRig rig(model, {.max_experts = 2});
    const auto tokens = RandomTokens(60, rig.config.vocab, 14);
    const auto first = std::span(tokens).first(25), second = std::span(tokens).subspan(25);
    const auto state = rig.NewState(), untouched = rig.NewState();
    rig.Run(*state, first, 64);
    rig.Run(*untouched, first, 64);
    const auto before = SavedBytesOf(*state);
    const auto expected = rig.Run(*untouched, second, 64);
    std::vector<float> logits(expected.size());
    SessionRows step{state.get(), second, logits};

    for (int64_t polls = 0;; ++polls) {
      int64_t left = polls;
      const Status status = rig.forward->Step({&step, 1}, [&] { return left-- == 0; });
      if (status.ok()) break;  // polls are used up: no harm, and the state went on
      BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kCancelled));
      BOOST_TEST(SavedBytesOf(*state) == before);
      BOOST_TEST(state->position() == 25);
    }
    BOOST_TEST(logits == expected, boost::test_tools::per_element());
    BOOST_TEST(SavedBytesOf(*state) == SavedBytesOf(*untouched));

    Require(state->LoadFrom(before, 25));
    for (const int64_t call : {0, 1, 5}) {
      rig.experts.calls = 0;
      rig.experts.fail_at = call;
      const Status status = rig.forward->Step({&step, 1}, {});
      BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kIo));
      BOOST_TEST(SavedBytesOf(*state) == before);
    }
    rig.experts.fail_at = -1;
    std::fill(logits.begin(), logits.end(), 0.0f);
    Require(rig.forward->Step({&step, 1}, {}));
    BOOST_TEST(logits == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(restored_rewound_and_forked_sessions_go_on_with_the_same_bits,
                     *boost::unit_test::label("slow")) {
  for (const TinyModelOptions& options : {TinyKimiLinear(), TinyK3()}) {
    const TinyModel model(options);
    ModelRig rig(model);
    const auto tokens = RandomTokens(400, rig.config.vocab, 15);
    const auto head = std::span(tokens).first(320), tail = std::span(tokens).subspan(320);
    const auto state = rig.NewState();
    rig.Run(*state, head, 64);

    const auto loaded = rig.NewState();
    Require(loaded->LoadFrom(SavedBytesOf(*state), 320));
    const auto forked = rig.NewState(401);
    forked->CopyFrom(*state);
    const auto expected = rig.Run(*state, tail, 64);
    BOOST_TEST(rig.Run(*loaded, tail, 64) == expected);
    BOOST_TEST(rig.Run(*forked, tail, 64) == expected);

    for (SessionState* rewound : {state.get(), forked.get()}) {
      const int64_t from = rewound->RewindTo(320);
      BOOST_TEST(from == 256);
      BOOST_TEST(rewound->position() == 256);
      rig.Run(*rewound, std::span(tokens).subspan(from, 320 - from), 64);
      BOOST_TEST(rig.Run(*rewound, tail, 64) == expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(step_without_rows_does_nothing) {
  const TinyModel model(TinyK3());
  ModelRig rig(model);
  const auto state = rig.NewState();
  SessionRows step{state.get(), {}, {}};
  Require(rig.forward->Step({&step, 1}, [] { return true; }));
  Require(rig.forward->Step({}, {}));
  BOOST_TEST(state->position() == 0);
}

BOOST_AUTO_TEST_CASE(context_can_be_filled_to_its_last_position) {
  const TinyModel model(TinyK3());
  ModelRig rig(model);
  const auto tokens = RandomTokens(30, rig.config.vocab, 16);
  const auto state = rig.NewState(30);
  BOOST_TEST(rig.Run(*state, tokens, 7) == rig.RunAlone(tokens, 7));
  BOOST_TEST(state->position() == 30);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
