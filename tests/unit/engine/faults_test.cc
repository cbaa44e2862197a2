// SPDX-License-Identifier: Apache-2.0
//
// Files fail under a whole engine while it answers. Each case ends in the same text as ever, or in
// an error that names what was read, after which the same call goes on from where it stood. One
// model serves all cases of a test, so each shows too that the one before left it sound. A hang is
// a failed case.

#include <boost/test/unit_test.hpp>

#include <array>
#include <optional>
#include <thread>

#include "support/faulty_engine.h"

namespace waste {
namespace {

using boost::unit_test::timeout;

constexpr unsigned kHangs = 300;  // seconds: sanitizers on a busy machine need a tenth
constexpr std::array<std::string_view, 2> kPrompts = {"What is the capital of Italy?",
                                                      "What is 7 + 12?"};
constexpr std::array<std::string_view, 2> kAnswers = {"The capital of Italy is Rome.",
                                                      "7 + 12 = 19."};

// The tokens of a session that nothing disturbed: both prompts and their answers.
struct Undisturbed {
  Undisturbed() {
    const FaultyEngine engine;
    const auto session = Require(Session::Create(engine.model(), {}));
    for (size_t turn = 0; turn < 2; ++turn) {
      Answer answer(session, kPrompts[turn]);
      prompt_ends[turn] = -1;
      while (Require(answer.Pull()))
        if (prompt_ends[turn] < 0) prompt_ends[turn] = session->token_count() - answer.sampled();
      BOOST_REQUIRE(answer.text() == kAnswers[turn]);
    }
    tokens = session->tokens();
  }
  std::vector<int32_t> tokens;
  std::array<int64_t, 2> prompt_ends;
};

struct Fault {
  const char* what;
  void (*set)(FileFaults& file, int64_t seed);
  std::optional<Code> code;  // what it ends in; none: nothing is noticed
};

constexpr Fault kAnyFile[] = {
    {"delays", [](FileFaults& f, int64_t) { f.delay_more_us = 300; }, {}},
    {"short reads", [](FileFaults& f, int64_t seed) { f.most_bytes = 61 + 999 * seed; }, {}},
    {"short reads and signals",
     [](FileFaults& f, int64_t seed) { f.most_bytes = 4096 + seed, f.interrupted = true; },
     {}},
    {"one read fails", [](FileFaults& f, int64_t seed) { f.fail_read = f.reads + seed; }, {}},
    {"the medium is gone", [](FileFaults& f, int64_t seed) { f.fail_from = f.reads + seed; },
     Code::kIo},
    {"the file is cut short", [](FileFaults& f, int64_t seed) { f.end = 40 + seed; },
     Code::kCorrupt},
};

// Bits of a record: of its magic, of its layer, and behind its header.
constexpr int64_t kMagicBit = 3, kLayerBit = 8 * 4 + 1, kPayloadBit = 8 * 200 + 5;

constexpr Fault kBanks[] = {
    {"one header is damaged on its way",
     [](FileFaults& f, int64_t seed) { f.read_bit = kLayerBit, f.flip_read = f.reads + seed; },
     {}},
    {"a damaged magic number",
     [](FileFaults& f, int64_t seed) { f.read_bit = kMagicBit, f.flip_from = f.reads + seed; },
     Code::kFormat},
    {"records of another layer",
     [](FileFaults& f, int64_t seed) { f.read_bit = kLayerBit, f.flip_from = f.reads + seed; },
     Code::kCorrupt},
};

constexpr Fault kVerifiedBanks[] = {
    {"one payload is damaged on its way",
     [](FileFaults& f, int64_t seed) { f.read_bit = kPayloadBit, f.flip_read = f.reads + seed; },
     {}},
    {"damaged payloads",
     [](FileFaults& f, int64_t seed) { f.read_bit = kPayloadBit, f.flip_from = f.reads + seed; },
     Code::kCorrupt},
};

// Asks both questions; from `phase` of the first answer on, `fault` is on `file`, until it is
// noticed. `names` are what an error must say.
void Check(const FaultyEngine& engine, const Undisturbed& sound, const Fault& fault, int64_t seed,
           Phase phase, FileFaults& file, const std::vector<std::string>& names) {
  const auto session = Require(Session::Create(engine.model(), {}));
  const auto set = [&] {
    file.seed = static_cast<uint64_t>(seed);
    fault.set(file, seed);
  };
  Answer first(session, kPrompts[0]);
  if (phase == Phase::kPrefill) set();
  if (phase == Phase::kDecode) {
    BOOST_REQUIRE(Require(first.Pull()));
    set();
  }
  const int64_t reads = file.reads;
  const auto failures = first.PullAll([&](const Answer& answer) {
    BOOST_TEST(session->token_count() == sound.prompt_ends[0] + answer.sampled());
    engine.Heal();
  });
  BOOST_TEST(file.reads > reads + seed);
  engine.Heal();
  BOOST_TEST(failures.size() == fault.code.has_value());
  for (const Status& failure : failures) {
    BOOST_TEST((failure.code() == fault.code), failure.message());
    for (const std::string& name : names)
      BOOST_TEST(failure.message().find(name) != std::string::npos, failure.message());
  }
  BOOST_TEST(first.text() == kAnswers[0]);
  Answer second(session, kPrompts[1]);
  BOOST_TEST(second.PullAll([&](const Answer&) { engine.Heal(); }).empty());
  BOOST_TEST(second.text() == kAnswers[1]);
  BOOST_TEST(session->tokens() == sound.tokens, boost::test_tools::per_element());
}

void CheckBanks(const FaultyEngine& engine, const Undisturbed& sound,
                std::span<const Fault> faults) {
  int32_t layer = 0;
  for (const Fault& fault : faults) {
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
      for (const int64_t seed : {0, 3}) {
        layer = layer % FaultyEngine::kBanks + 1;
        const std::string number = std::to_string(layer);
        BOOST_TEST_CONTEXT(fault.what << ", layer " << number << ", seed " << seed << ", decode "
                                      << (phase == Phase::kDecode)) {
          Check(engine, sound, fault, seed, phase, engine.bank(layer),
                {"bank " + number + ", expert ", "experts-L" + number + ".bin"});
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE(faults)

BOOST_AUTO_TEST_CASE(reads_of_experts_that_fail_are_named_or_not_noticed, *timeout(kHangs)) {
  const Undisturbed sound;
  const FaultyEngine engine;
  CheckBanks(engine, sound, kAnyFile);
  CheckBanks(engine, sound, kBanks);
}

BOOST_AUTO_TEST_CASE(damage_behind_the_header_is_named_where_experts_are_verified,
                     *timeout(kHangs) * boost::unit_test::label("slow")) {
  const Undisturbed sound;
  const FaultyEngine engine({.verify = true});
  CheckBanks(engine, sound, kBanks);
  CheckBanks(engine, sound, kVerifiedBanks);
}

BOOST_AUTO_TEST_CASE(rows_of_the_embedding_that_cannot_be_read_are_named_or_not_noticed,
                     *timeout(kHangs)) {
  const Undisturbed sound;
  const FaultyEngine engine;
  for (const Fault& fault : kAnyFile) {
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
      BOOST_TEST_CONTEXT(fault.what) {
        Check(engine, sound, fault, 3, phase, engine.trunk(),
              {"trunk tensor \"", "embed_tokens.weight\"", "trunk.bin"});
      }
    }
  }
}

// Nothing can tell such damage; it must not do more than change the text of those who met it.
BOOST_AUTO_TEST_CASE(damage_that_nobody_can_see_ends_with_the_answer, *timeout(kHangs)) {
  const FaultyEngine engine({.lookahead = false});  // nothing is read for a later answer
  for (int64_t bit = kPayloadBit; bit < kPayloadBit + 40'000; bit += 9'999) {
    for (FileFaults* file : engine.files())
      file->read_bit = file == &engine.trunk() ? bit % 64 : bit;
    const auto session = Require(Session::Create(engine.model(), {}));
    Answer damaged(session, kPrompts[0]);
    for (int32_t layer = 1; layer < FaultyEngine::kBanks; ++layer) engine.bank(layer).flip_from = 0;
    engine.trunk().flip_from = 0;
    damaged.PullAll([&](const Answer&) { engine.Heal(); });
    engine.Heal();
  }
  const auto session = Require(Session::Create(engine.model(), {}));
  Answer answer(session, kPrompts[0]);
  BOOST_TEST(answer.PullAll([](const Answer&) {}).empty());
  BOOST_TEST(answer.text() == kAnswers[0]);
}

// As after a cancel: the session holds the prompt and what was handed out.
BOOST_AUTO_TEST_CASE(an_answer_given_up_after_a_failure_leaves_a_session_that_can_be_asked,
                     *timeout(kHangs)) {
  const FaultyEngine engine;
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> tokens;
  for (const bool fails : {false, true}) {
    const auto session = Require(Session::Create(engine.model(), {}));
    {
      Answer answer(session, kPrompts[0]);
      for (int piece = 0; piece < 3; ++piece) BOOST_REQUIRE(Require(answer.Pull()));
      if (fails) {
        engine.bank(4).fail_from = 0;
        BOOST_TEST(!answer.Pull().ok());
      }
    }
    engine.Heal();
    tokens.push_back(session->tokens());
    Answer next(session, kPrompts[1]);
    BOOST_TEST(next.PullAll([](const Answer&) {}).empty());
    texts.push_back(next.text());
  }
  BOOST_TEST(tokens[0] == tokens[1], boost::test_tools::per_element());
  BOOST_TEST(texts[0] == texts[1]);
}

BOOST_AUTO_TEST_CASE(sessions_in_company_get_through_files_that_fail_by_chance, *timeout(kHangs)) {
  const FaultyEngine engine({.verify = true}, 2);
  uint64_t seed = 5;
  for (FileFaults* file : engine.files()) {
    file->seed = ++seed;
    file->failures_of_1000 = file == &engine.trunk() ? 10 : 200;  // each is tried twice
    file->delay_more_us = 100;
    file->most_bytes = 5000;
    file->interrupted = true;
  }
  std::atomic<int64_t> failures{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      const auto session = Require(Session::Create(engine.model(), {}));
      for (size_t turn = 0; turn < 2; ++turn) {
        Answer answer(session, kPrompts[turn]);
        for (const Status& failure : answer.PullAll([](const Answer&) {}))
          failure.code() == Code::kIo ? ++failures : ++wrong;
        if (answer.text() != kAnswers[turn]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(failures > 0);
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
