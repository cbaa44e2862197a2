// SPDX-License-Identifier: Apache-2.0
//
// Sessions: messages, limits, save and load, rewind, fork, eval; on scripted models.

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <future>

#include "support/capi.h"

namespace waste_test {
namespace {

constexpr char kTwoAnswers[] = R"({"answers": [["one", "!"], ["two", "!"]]})";

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

BOOST_AUTO_TEST_SUITE(session)

BOOST_AUTO_TEST_CASE(messages_before_a_prompt_are_part_of_the_conversation) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  BOOST_TEST(
      waste_session_add_message(session.get(), WASTE_ROLE_SYSTEM, "Be terse.", -1, nullptr) == 0);
  BOOST_TEST(waste_session_add_message(session.get(), WASTE_ROLE_USER, "Hi", -1, nullptr) == 0);
  BOOST_TEST(Ask(session, nullptr).text == "one!");
  std::vector<int32_t> tokens = Tokens(session);
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(waste_detokenize(script.model.get(), tokens.data(),
                                                   static_cast<int64_t>(tokens.size()), text.data(),
                                                   4096, nullptr)));
  BOOST_TEST(text ==
             "<|open|>message role=\"system\"<|sep|>Be terse.<|close|>message<|sep|><|end_of_msg|>"
             "<|open|>message role=\"user\"<|sep|>Hi<|close|>message<|sep|><|end_of_msg|>"
             "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>one!"
             "<|end_of_msg|>");
}

BOOST_AUTO_TEST_CASE(special_tokens_typed_by_a_user_stay_text) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  BOOST_TEST(waste_session_add_message(session.get(), WASTE_ROLE_USER, "<|end_of_msg|><|open|>", -1,
                                       nullptr) == 0);
  int32_t specials[2];
  BOOST_TEST(waste_tokenize_markup(script.model.get(), "<|end_of_msg|><|open|>", -1, specials, 2,
                                   nullptr) == 2);
  int32_t opened = 0, ended = 0;
  for (const int32_t token : Tokens(session)) {
    ended += token == specials[0];
    opened += token == specials[1];
  }
  BOOST_TEST(ended == 1);  // the message's own
  BOOST_TEST(opened == 1);
}

BOOST_AUTO_TEST_CASE(bad_input_leaves_the_session_as_it_was) {
  const Scripted script(R"({"context": 80, "answers": [["one"]]})");
  const Session session = NewSession(script.model);
  BOOST_TEST(waste_session_add_message(session.get(), WASTE_ROLE_USER, "Hi", -1, nullptr) == 0);
  const std::vector<int32_t> before = Tokens(session);
  waste_error error = NewError();
  const std::string too_long(200, 'x');
  waste_generation* generation = nullptr;
  BOOST_TEST(waste_session_add_message(session.get(), WASTE_ROLE_USER, too_long.c_str(), -1,
                                       &error) == WASTE_ERR_CONTEXT_FULL);
  BOOST_TEST(std::string(error.message).find("of 80") != std::string::npos);
  BOOST_TEST(waste_generate(session.get(), too_long.c_str(), -1, nullptr, &generation, &error) ==
             WASTE_ERR_CONTEXT_FULL);
  BOOST_TEST(waste_session_add_message(session.get(), 7, "x", -1, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_session_add_message(session.get(), WASTE_ROLE_USER, "ab\xC0", -1, &error) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(std::string(error.message) == "text is not UTF-8 at byte 2 of 3");
  BOOST_TEST(waste_session_add_message(session.get(), WASTE_ROLE_USER, nullptr, 5, &error) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_session_rewind(session.get(), -1, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_session_rewind(session.get(), 1000, &error) == WASTE_ERR_ARGUMENT);
  const int32_t outside = 100000;
  BOOST_TEST(waste_eval(session.get(), &outside, 1, nullptr, 0, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(Tokens(session) == before, boost::test_tools::per_element());
  BOOST_TEST(Ask(session, nullptr).text == "one");
}

BOOST_AUTO_TEST_CASE(empty_session_without_a_prompt_is_refused) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  waste_generation* generation = nullptr;
  waste_error error = NewError();
  BOOST_TEST(waste_generate(session.get(), nullptr, 0, nullptr, &generation, &error) ==
             WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(text_with_a_nul_inside_is_kept) {
  const Scripted script(kTwoAnswers);
  int32_t tokens[3];
  BOOST_TEST(waste_tokenize(script.model.get(), "a\0b", 3, tokens, 3, nullptr) == 3);
  BOOST_TEST(tokens[1] == 0);
  char text[4];
  BOOST_TEST(waste_detokenize(script.model.get(), tokens, 3, text, 4, nullptr) == 3);
  BOOST_TEST(std::string(text, 3) == std::string("a\0b", 3));
}

BOOST_AUTO_TEST_CASE(saved_session_goes_on_as_if_uninterrupted) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  BOOST_TEST(Ask(session, "first").text == "one!");
  const std::string file = script.folder().File("session");
  BOOST_TEST(waste_session_save(session.get(), file.c_str(), -1, nullptr) == 0);
  const Session other = NewSession(script.model);
  BOOST_TEST(waste_session_load(other.get(), file.c_str(), -1, nullptr) == 0);
  BOOST_TEST(Tokens(other) == Tokens(session), boost::test_tools::per_element());
  BOOST_TEST(Ask(other, "second").text == "two!");
  BOOST_TEST(Ask(session, "second").text == "two!");
}

BOOST_AUTO_TEST_CASE(damaged_session_file_is_refused_at_every_byte_and_changes_nothing) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  Ask(session, "first");
  const std::string file = script.folder().File("session");
  BOOST_TEST(waste_session_save(session.get(), file.c_str(), -1, nullptr) == 0);
  const std::string good = ReadAll(file);
  const Session victim = NewSession(script.model);
  Ask(victim, "first");
  const std::vector<int32_t> before = Tokens(victim);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    WriteFile(file, bad);
    BOOST_REQUIRE(waste_session_load(victim.get(), file.c_str(), -1, nullptr) < 0);
    WriteFile(file, good.substr(0, i));
    BOOST_REQUIRE(waste_session_load(victim.get(), file.c_str(), -1, nullptr) < 0);
  }
  BOOST_TEST(waste_session_load(victim.get(), "/nowhere/at all", -1, nullptr) == WASTE_ERR_IO);
  BOOST_TEST(Tokens(victim) == before, boost::test_tools::per_element());
  BOOST_TEST(Ask(victim, "second").text == "two!");
}

BOOST_AUTO_TEST_CASE(session_of_another_kind_or_length_is_not_loaded) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  Ask(session, "first");
  const std::string file = script.folder().File("session");
  BOOST_TEST(waste_session_save(session.get(), file.c_str(), -1, nullptr) == 0);
  waste_session_options options = Sized<waste_session_options>();
  options.context = 5;
  const Session small = NewSession(script.model, &options);
  BOOST_TEST(waste_session_load(small.get(), file.c_str(), -1, nullptr) == WASTE_ERR_CONTEXT_FULL);
  options = {sizeof options, 1, 0};
  const Session thinking = NewSession(script.model, &options);
  BOOST_TEST(waste_session_load(thinking.get(), file.c_str(), -1, nullptr) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(rewound_session_answers_again_and_a_fork_goes_its_own_way) {
  const Scripted script(kTwoAnswers);
  const Session session = NewSession(script.model);
  BOOST_TEST(Ask(session, "first").text == "one!");
  const int64_t after_first = static_cast<int64_t>(Tokens(session).size());
  waste_session* fork = nullptr;
  BOOST_TEST(waste_session_fork(session.get(), &fork, nullptr) == 0);
  const Session copy(fork);
  BOOST_TEST(Ask(session, "second").text == "two!");
  BOOST_TEST(waste_session_rewind(session.get(), after_first, nullptr) == 0);
  BOOST_TEST(Tokens(session) == Tokens(copy), boost::test_tools::per_element());
  BOOST_TEST(Ask(session, "again").text == "two!");
  BOOST_TEST(Ask(copy, "other").text == "two!");
  BOOST_TEST(waste_session_reset(session.get(), nullptr) == 0);
  BOOST_TEST(Ask(session, "first").text == "one!");
}

BOOST_AUTO_TEST_CASE(eval_gives_logits_of_the_last_tokens) {
  const Scripted script(R"({"answers": [["a", "b"]]})");
  const Session session = NewSession(script.model);
  waste_info info = Sized<waste_info>();
  BOOST_TEST(waste_model_info(script.model.get(), &info, nullptr) == 0);
  std::vector<float> logits(static_cast<size_t>(info.vocab_size) * 2);
  const int32_t prompt[] = {'x', 'y', 'z'};
  BOOST_TEST(waste_eval(session.get(), prompt, 3, logits.data(), info.vocab_size * 2, nullptr) ==
             info.vocab_size * 2);
  BOOST_TEST(logits[static_cast<size_t>(info.vocab_size) + 'a'] == 20.0f);
  const int32_t next = 'a';
  BOOST_TEST(waste_eval(session.get(), &next, 1, logits.data(), info.vocab_size, nullptr) ==
             info.vocab_size);
  BOOST_TEST(logits['b'] == 20.0f);
  waste_error error = NewError();
  BOOST_TEST(waste_eval(session.get(), &next, 1, logits.data(), info.vocab_size - 1, &error) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_eval(session.get(), &next, 1, logits.data(), info.vocab_size * 2, &error) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(Tokens(session).size() == 4u);
}

BOOST_AUTO_TEST_CASE(sessions_of_two_models_run_in_four_threads) {
  const Scripted first(R"({"answers": [["first"]]})");
  const Scripted second(R"({"answers": [["second"]]})");
  const auto wrong_answers = [&](bool odd) {
    const Session session = NewSession(odd ? second.model : first.model);
    int wrong = 0;
    for (int i = 0; i < 50; ++i) wrong += Ask(session, "hi").text != (odd ? "second" : "first");
    return wrong;
  };
  std::vector<std::future<int>> threads;
  for (const bool odd : {false, true, false, true})
    threads.push_back(std::async(std::launch::async, wrong_answers, odd));
  for (auto& thread : threads) BOOST_TEST(thread.get() == 0);
}

BOOST_AUTO_TEST_CASE(refused_attempts_do_not_disturb_the_answer_that_lives) {
  const Scripted script(R"({"answers": [[{"repeat": "ha"}]]})");
  const Session session = NewSession(script.model);
  const Generation answer = Generate(session, "hi");
  std::atomic<bool> done{false};
  auto attempts = std::async(std::launch::async, [&] {
    bool refused = true;
    for (int64_t count = 0; !done || count == 0; ++count) {
      waste_generation* none = nullptr;
      refused =
          refused &&
          waste_generate(session.get(), "Hi", -1, nullptr, &none, nullptr) == WASTE_ERR_BUSY &&
          waste_session_reset(session.get(), nullptr) == WASTE_ERR_BUSY;
    }
    return refused;
  });
  int64_t read = 0;
  char piece[64];
  while (read < 3000 && waste_next(answer.get(), piece, sizeof piece, nullptr, nullptr) == 2)
    ++read;
  done = true;
  BOOST_TEST(attempts.get());
  BOOST_TEST(read == 3000);
}

// Runs waste_eval of `count` tokens in a thread until it is inside, calls `end`, and returns what
// the evaluation said.
template <typename End>
int64_t EvalEndedBy(waste_session* session, int64_t count, const End& end) {
  const std::vector<int32_t> tokens(static_cast<size_t>(count), 65);
  auto evaluation = std::async(std::launch::async, [&] {
    return waste_eval(session, tokens.data(), count, nullptr, 0, nullptr);
  });
  waste_stats stats = Sized<waste_stats>();  // whose question claims nothing and can refuse nothing
  while (waste_session_stats(session, &stats, nullptr) == WASTE_OK && stats.position == 0)
    if (evaluation.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) break;
  end();
  return evaluation.get();
}

BOOST_AUTO_TEST_CASE(an_evaluation_ends_when_it_is_cancelled) {
  const Scripted script(R"({"answers": [["a"]], "prefill_stall_ms": 20000})");
  const Session session = NewSession(script.model);
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < 2; ++round) {
    BOOST_TEST(EvalEndedBy(session.get(), 10, [&] { waste_cancel(session.get()); }) ==
               WASTE_ERR_CANCELLED);
    BOOST_TEST(Tokens(session).empty());
  }
  BOOST_CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

BOOST_AUTO_TEST_CASE(a_cancel_between_evaluations_does_nothing) {
  const Scripted script(R"({"answers": [["a"]]})");
  const Session session = NewSession(script.model);
  waste_cancel(session.get());
  const int32_t tokens[] = {65, 66};
  BOOST_TEST(waste_eval(session.get(), tokens, 2, nullptr, 0, nullptr) == 0);
  BOOST_TEST(Tokens(session).size() == 2);
}

BOOST_AUTO_TEST_CASE(freeing_a_session_ends_its_evaluation) {
  const Scripted script(R"({"answers": [["a"]], "prefill_stall_ms": 20000})");
  waste_session* session = NewSession(script.model).release();
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(EvalEndedBy(session, 10, [&] { waste_free(session); }) == WASTE_ERR_CANCELLED);
  BOOST_CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
