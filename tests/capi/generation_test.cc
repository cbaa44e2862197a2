// SPDX-License-Identifier: Apache-2.0
//
// Answers: streaming, stop strings, limits, cancelling, failures. On scripted models, so that every
// piece and every failure comes where the test wants it.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>

#include "support/capi.h"

namespace waste_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

waste_generation_options Options() {
  waste_generation_options options;
  waste_generation_options_init(&options, sizeof options);
  return options;
}

BOOST_AUTO_TEST_SUITE(generation)

BOOST_AUTO_TEST_CASE(emoji_split_over_tokens_arrives_whole) {
  // The family of four, byte by byte, between two words.
  std::string items = "\"A \"";
  const std::string family = "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9";
  for (const char c : family) {
    char item[32];
    snprintf(item, sizeof item, ", {\"bytes\": \"%02x\"}", static_cast<unsigned char>(c));
    items += item;
  }
  const Scripted script("{\"answers\": [[" + items + ", \" Z\"]]}");
  const Answer answer = Ask(NewSession(script.model), "hi");
  BOOST_TEST(answer.text == "A " + family + " Z");
  BOOST_TEST(answer.finish_reason == WASTE_FINISH_STOP);
  const std::vector<std::string> pieces = {"A ", "\xF0\x9F\x91\xA8", "\xE2\x80\x8D",
                                           "\xF0\x9F\x91\xA9", " Z"};
  BOOST_TEST(answer.pieces == pieces, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_character_become_one_replacement_each_sequence) {
  const Scripted script(
      R"({"answers": [["a", {"bytes": "ff"}, {"bytes": "e282"}, "b", {"bytes": "f09f98"}]]})");
  BOOST_TEST(Ask(NewSession(script.model), "hi").text ==
             "a\xEF\xBF\xBD\xEF\xBF\xBD"
             "b\xEF\xBF\xBD");
}

BOOST_AUTO_TEST_CASE(small_buffers_cut_at_characters_and_lose_nothing) {
  const Scripted script(
      R"({"answers": [["Grüße aus Köln, schöne Größe überall: 👨‍👩‍👧‍👦👨‍👩‍👧‍👦"]]})");
  const Session session = NewSession(script.model);
  const Answer whole = Ask(session, "hi");
  const Answer cut = Drain(Generate(session, "hi"), 16);
  BOOST_TEST(cut.text == whole.text);
  BOOST_TEST(whole.pieces.size() == 1u);
  BOOST_TEST(cut.pieces.size() > 4u);
  for (const std::string& piece : cut.pieces) BOOST_TEST(piece.size() <= 16u);
  waste_error error = NewError();
  char buffer[16];
  const Generation generation = Generate(session, "hi");
  BOOST_TEST(waste_next(generation.get(), buffer, 15, nullptr, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_next(generation.get(), nullptr, 16, nullptr, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(Drain(generation).text == whole.text);
}

BOOST_AUTO_TEST_CASE(token_info_says_which_tokens_a_piece_consumed) {
  const Scripted script(R"({"answers": [["x", {"bytes": "f09f"}, {"bytes": "9880"}, "y"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  struct {
    int64_t first;
    int32_t count;
  } const kExpected[] = {{0, 1}, {1, 2}, {3, 1}};
  char buffer[64];
  waste_token token = Sized<waste_token>();
  for (const auto& expected : kExpected) {
    BOOST_TEST(waste_next(generation.get(), buffer, sizeof buffer, &token, nullptr) > 0);
    BOOST_TEST(token.first_index == expected.first);
    BOOST_TEST(token.count == expected.count);
    BOOST_TEST(token.finish_reason == WASTE_FINISH_NONE);
  }
  BOOST_TEST(waste_next(generation.get(), buffer, sizeof buffer, &token, nullptr) == 0);
  BOOST_TEST(token.finish_reason == WASTE_FINISH_STOP);
  BOOST_TEST(waste_generation_tokens(generation.get(), nullptr, 0, nullptr, 0, nullptr) == 5);
}

BOOST_AUTO_TEST_CASE(stop_string_over_pieces_is_cut_exactly_and_no_prefix_leaks) {
  struct {
    const char* answer;
    const char* stop;
    const char* text;
    int32_t reason;
  } const kCases[] = {
      {R"(["one", "\n", "\n", "two"])", "\n\n", "one", WASTE_FINISH_STOP},
      {R"(["one\n", "x", "\n\n", "two"])", "\n\n", "one\nx", WASTE_FINISH_STOP},
      {R"(["abab", "abac", "d"])", "abac", "abab", WASTE_FINISH_STOP},
      {R"(["one", "\n"])", "\n\n", "one\n", WASTE_FINISH_STOP},  // a prefix at the end is text
      {R"(["hello"])", "hello", "", WASTE_FINISH_STOP},
      {R"(["he", "llo ", "wörld"])", "ö", "hello w", WASTE_FINISH_STOP},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.answer << " stop " << c.stop) {
      const Scripted script(std::string("{\"answers\": [") + c.answer + "]}");
      const Session session = NewSession(script.model);
      const Generation generation = Generate(session, "hi");
      BOOST_TEST(waste_generation_add_stop(generation.get(), c.stop, -1, nullptr) == 0);
      const Answer answer = Drain(generation);
      BOOST_TEST(answer.text == c.text);
      BOOST_TEST(answer.finish_reason == c.reason);
    }
  }
}

BOOST_AUTO_TEST_CASE(stops_come_before_the_first_next_and_are_checked) {
  const Scripted script(R"({"answers": [["a", "b", "c"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  BOOST_TEST(waste_generation_add_stop(generation.get(), "", -1, nullptr) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_generation_add_stop_token(generation.get(), 100000, nullptr) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_generation_add_bias(generation.get(), 'b', std::nan(""), nullptr) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_generation_add_stop_token(generation.get(), 'b', nullptr) == 0);
  char buffer[16];
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
  BOOST_TEST(waste_generation_add_stop(generation.get(), "x", -1, nullptr) == WASTE_ERR_ARGUMENT);
  const Answer rest = Drain(generation);
  BOOST_TEST(rest.text == "");
  BOOST_TEST(rest.finish_reason == WASTE_FINISH_STOP);
}

BOOST_AUTO_TEST_CASE(bias_forbids_a_token) {
  const Scripted script(R"({"answers": [["a"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  BOOST_TEST(waste_generation_add_bias(generation.get(), 'a', -INFINITY, nullptr) == 0);
  waste_token token = Sized<waste_token>();
  char buffer[16];
  waste_next(generation.get(), buffer, 16, &token, nullptr);
  BOOST_TEST(token.id != 'a');
}

BOOST_AUTO_TEST_CASE(length_ends_an_answer_that_never_ends) {
  const Scripted script(R"({"context": 90, "answers": [[{"repeat": "ha"}]]})");
  const Session session = NewSession(script.model);
  waste_generation_options options = Options();
  options.max_tokens = 4;
  const Answer four = Ask(session, "hi", &options);
  BOOST_TEST(four.text == "hahahaha");
  BOOST_TEST(four.finish_reason == WASTE_FINISH_LENGTH);
  waste_session_reset(session.get(), nullptr);
  const Answer full = Ask(session, "hi");
  BOOST_TEST(full.finish_reason == WASTE_FINISH_LENGTH);
  waste_stats stats = Sized<waste_stats>();
  BOOST_TEST(waste_session_stats(session.get(), &stats, nullptr) == 0);
  BOOST_TEST(stats.position == 90);
}

BOOST_AUTO_TEST_CASE(thinking_and_markup_go_to_their_channels) {
  const Scripted script(R"({"answers": [["deep", {"special": "<|close|>"}, "think",
      {"special": "<|sep|>"}, {"special": "<|open|>"}, "response", {"special": "<|sep|>"}, "42",
      {"special": "<|close|>"}, "response", {"special": "<|sep|>"}]]})");
  waste_session_options think = Sized<waste_session_options>();
  think.thinking = 1;
  const Answer answer = Ask(NewSession(script.model, &think), "hi");
  BOOST_TEST(answer.thinking == "deep");
  BOOST_TEST(answer.text == "42");
  waste_generation_options options = Options();
  options.markup_out = 1;
  const Answer raw = Ask(NewSession(script.model, &think), "hi", &options);
  BOOST_TEST(raw.thinking + raw.text ==
             "deep<|close|>think<|sep|><|open|>response<|sep|>42<|close|>response<|sep|>"
             "<|end_of_msg|>");
}

BOOST_AUTO_TEST_CASE(log_probabilities_are_those_of_the_tokens) {
  const Scripted script(R"({"answers": [["a", "b"]]})");
  waste_generation_options options = Options();
  options.logprobs = 1;
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi", &options);
  Drain(generation);
  int32_t ids[8];
  double logprobs[8];
  BOOST_TEST(waste_generation_tokens(generation.get(), ids, 8, logprobs, 8, nullptr) == 3);
  BOOST_TEST(ids[0] == 'a');
  BOOST_TEST(ids[1] == 'b');
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(logprobs[i] < 0);
    BOOST_TEST(logprobs[i] > -1e-5);  // the script is sure
  }
}

BOOST_AUTO_TEST_CASE(cancel_before_the_first_piece_delivers_nothing_and_changes_nothing) {
  const Scripted script(R"({"answers": [["a", "b"]]})");
  const Session session = NewSession(script.model);
  {
    const Generation generation = Generate(session, "hi");
    waste_cancel(generation.get());
    waste_cancel(generation.get());
    for (int i = 0; i < 2; ++i) {
      const Answer answer = Drain(generation);
      BOOST_TEST(answer.status == WASTE_ERR_CANCELLED);
      BOOST_TEST(answer.finish_reason == WASTE_FINISH_CANCELLED);
      BOOST_TEST(answer.text == "");
    }
  }
  BOOST_TEST(Tokens(session).empty());
  BOOST_TEST(Ask(session, "hi").text == "ab");
}

BOOST_AUTO_TEST_CASE(cancelled_session_holds_the_prompt_and_the_tokens_handed_out) {
  // The emoji's first half was sampled and held back when the cancel came: it is not kept.
  const Scripted script(
      R"({"answers": [["a", "b", {"bytes": "f09f"}, {"stall_ms": 10000}, {"bytes": "9880"}]]})");
  const Session session = NewSession(script.model);
  Generation generation = Generate(session, "hi");
  char buffer[16];
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    waste_cancel(generation.get());
  });
  const auto start = steady_clock::now();
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == WASTE_ERR_CANCELLED);
  BOOST_TEST((steady_clock::now() - start < milliseconds(2000)));
  canceller.join();
  const std::vector<int32_t> tokens = Tokens(session);
  BOOST_REQUIRE(tokens.size() > 2u);
  BOOST_TEST(tokens[tokens.size() - 2] == 'a');
  BOOST_TEST(tokens[tokens.size() - 1] == 'b');
}

BOOST_AUTO_TEST_CASE(prompt_behind_a_cancelled_answer_gets_the_next_answer) {
  const Scripted script(R"({"answers": [["a", "b", "c"], ["next"], ["last"]]})");
  for (const int delivered : {0, 1, 2}) {
    BOOST_TEST_CONTEXT("after " << delivered << " pieces") {
      const Session session = NewSession(script.model);
      {
        const Generation generation = Generate(session, "hi");
        char buffer[16];
        for (int i = 0; i < delivered; ++i)
          BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
        waste_cancel(generation.get());
        BOOST_TEST(Drain(generation).status == WASTE_ERR_CANCELLED);
      }
      const std::string expected = delivered == 0 ? "abc" : "next";
      BOOST_TEST(
          Ask(session, "a prompt of more than one step, since it has more than 64 tokens").text ==
          expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(cancel_in_the_middle_of_prefill_leaves_the_prompt_pending) {
  const Scripted script(R"({"prefill_stall_ms": 10000, "answers": [["a"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  std::thread canceller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    waste_cancel(generation.get());
  });
  const auto start = steady_clock::now();
  BOOST_TEST(Drain(generation).status == WASTE_ERR_CANCELLED);
  BOOST_TEST((steady_clock::now() - start < milliseconds(2000)));
  canceller.join();
  BOOST_TEST(!Tokens(session).empty());
}

BOOST_AUTO_TEST_CASE(late_cancel_does_nothing) {
  const Scripted script(R"({"answers": [["a"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  BOOST_TEST(Drain(generation).status == 0);
  waste_cancel(generation.get());
  const Answer again = Drain(generation);
  BOOST_TEST(again.status == 0);
  BOOST_TEST(again.finish_reason == WASTE_FINISH_STOP);
}

BOOST_AUTO_TEST_CASE(dropped_generation_frees_its_session) {
  const Scripted script(R"({"answers": [["a", "b", "c"]]})");
  const Session session = NewSession(script.model);
  Generation generation = Generate(session, "hi");
  char buffer[16];
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
  waste_generation* second = nullptr;
  waste_error error = NewError();
  BOOST_TEST(waste_generate(session.get(), "x", -1, nullptr, &second, &error) == WASTE_ERR_BUSY);
  BOOST_TEST(waste_session_reset(session.get(), &error) == WASTE_ERR_BUSY);
  generation.reset();
  BOOST_TEST(Tokens(session).back() == 'a');
  BOOST_TEST(Ask(session, "hi").text == "abc");
}

BOOST_AUTO_TEST_CASE(generation_freed_while_another_thread_reads_it) {
  const Scripted script(R"({"answers": [["a", {"stall_ms": 10000}, "b"]]})");
  const Session session = NewSession(script.model);
  waste_generation* generation = Generate(session, "hi").release();
  char buffer[16];
  BOOST_TEST(waste_next(generation, buffer, 16, nullptr, nullptr) == 1);
  std::atomic<int64_t> result{99};
  std::thread reader([&] { result = waste_next(generation, buffer, 16, nullptr, nullptr); });
  std::this_thread::sleep_for(milliseconds(50));
  waste_free(generation);
  reader.join();
  BOOST_TEST(result.load() == WASTE_ERR_CANCELLED);
  BOOST_TEST(Tokens(session).back() == 'a');
}

BOOST_AUTO_TEST_CASE(second_call_on_a_session_is_busy_and_the_first_unaffected) {
  const Scripted script(R"({"answers": [["a", {"stall_ms": 300}, "b"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  auto reader = std::async(std::launch::async, [&] { return Drain(generation).text; });
  std::this_thread::sleep_for(milliseconds(100));
  waste_error error = NewError();
  char buffer[16];
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, &error) == WASTE_ERR_BUSY);
  BOOST_TEST(waste_session_tokens(session.get(), nullptr, 0, &error) == WASTE_ERR_BUSY);
  waste_stats stats = Sized<waste_stats>();
  BOOST_TEST(waste_session_stats(session.get(), &stats, &error) == 0);  // any time
  BOOST_TEST(waste_generation_stats(generation.get(), &stats, &error) == 0);
  BOOST_TEST(reader.get() == "ab");
}

BOOST_AUTO_TEST_CASE(failed_read_is_reported_and_the_next_call_goes_on) {
  const Scripted script(
      R"({"answers": [["a", {"error": "IO", "message": "bank 3: unplugged", "times": 2}, "b"]]})");
  const Session session = NewSession(script.model);
  const Generation generation = Generate(session, "hi");
  char buffer[16];
  BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
  for (int i = 0; i < 2; ++i) {
    waste_error error = NewError();
    BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, &error) == WASTE_ERR_IO);
    BOOST_TEST(error.code == WASTE_ERR_IO);
    BOOST_TEST(std::string(error.message).find("bank 3: unplugged") != std::string::npos);
  }
  BOOST_TEST(Drain(generation).text == "b");
}

BOOST_AUTO_TEST_CASE(answer_cut_short_goes_on_without_a_prompt_or_is_closed_by_the_next_message) {
  const Scripted script(R"({"answers": [["a", "b", "c", "d"], ["next"]]})");
  waste_generation_options two = Options();
  two.max_tokens = 2;
  const Session session = NewSession(script.model);
  BOOST_TEST(Ask(session, "hi", &two).text == "ab");
  BOOST_TEST(Ask(session, nullptr, &two).text == "cd");
  BOOST_TEST(Ask(session, "more").text == "next");
  // What the model sees is a closed turn: the same tokens as if it had closed it itself.
  const int64_t count = waste_session_tokens(session.get(), nullptr, 0, nullptr);
  const std::vector<int32_t> tokens = Tokens(session);
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(
      waste_detokenize(script.model.get(), tokens.data(), count, text.data(), 4096, nullptr)));
  BOOST_TEST(text.find("abcd<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"
                       "<|open|>message role=\"user\"<|sep|>more") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(raw_prompt_is_continued_without_markup) {
  const Scripted script(R"({"answers": [["!"]]})");
  waste_generation_options options = Options();
  options.raw = 1;
  const Session session = NewSession(script.model);
  BOOST_TEST(Ask(session, "<|open|>", &options).text == "!");
  std::vector<int32_t> expected;
  for (const char c : std::string("<|open|>!")) expected.push_back(c);
  std::vector<int32_t> tokens = Tokens(session);
  tokens.pop_back();  // the end of the turn
  BOOST_TEST(tokens == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_options_are_named) {
  const Scripted script(R"({"answers": [["a"]]})");
  const Session session = NewSession(script.model);
  const auto refused = [&](auto change) {
    waste_generation_options options = Options();
    change(options);
    waste_error error = NewError();
    waste_generation* generation = nullptr;
    BOOST_TEST(waste_generate(session.get(), "a", -1, &options, &generation, &error) ==
               WASTE_ERR_ARGUMENT);
    BOOST_TEST(generation == nullptr);
    return std::string(error.message);
  };
  BOOST_TEST(refused([](auto& o) { o.temperature = -1; }).find("temperature") != std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.temperature = NAN; }).find("temperature") !=
             std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.top_p = 1.5; }).find("top_p") != std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.min_p = -0.1; }).find("min_p") != std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.top_k = -1; }).find("top_k") != std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.max_tokens = -1; }).find("max_tokens") != std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.raw = 2; }).find("raw") != std::string::npos);
  BOOST_TEST(refused([](auto& o) { o.reserved = 1; }).find("reserved") != std::string::npos);
  BOOST_TEST(Ask(session, "a").text == "a");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
