// SPDX-License-Identifier: Apache-2.0
//
// A container that changes on disk while a model of it is open, seen through the C API: the call
// that meets it fails with a code and a name, its handles stay usable, and when the file is back
// the same call goes on to the same text.

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/capi.h"

namespace waste_test {
namespace {

constexpr const char* kQuestion = "What is the capital of Italy?";
constexpr const char* kAnswer = "The capital of Italy is Rome.";

// A copy of the mini model, opened with the smallest budget: every token reads experts.
struct Fixture {
  Fixture() {
    std::filesystem::copy(MiniModel(), path);
    waste_open_options options = Sized<waste_open_options>();
    options.context = 256;
    waste_memory_plan plan = Sized<waste_memory_plan>();
    Require(waste_plan(path.c_str(), -1, &options, &plan, nullptr) == 0, "no plan");
    options.budget_bytes = plan.floor_bytes;
    model = Open(path, &options);
    session = NewSession(model);
  }

  // The next piece's length, or the failure, which names the third layer's bank.
  int64_t Next(const Generation& generation) const {
    char buffer[64];
    waste_error error = NewError();
    const int64_t result = waste_next(generation.get(), buffer, sizeof buffer, nullptr, &error);
    if (result < 0) {
      BOOST_TEST(error.code == result);
      for (const char* name : {"bank 3, expert ", "experts-L3.bin"})
        BOOST_TEST(std::string(error.message).find(name) != std::string::npos, error.message);
    }
    return result;
  }

  std::string Bytes() const {
    std::ifstream file(bank, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder;
  std::string path = folder.File("copy.waste");
  std::string bank = path + "/experts-L3.bin";
  Model model;
  Session session;
};

BOOST_FIXTURE_TEST_SUITE(faults, Fixture)

BOOST_AUTO_TEST_CASE(a_bank_cut_short_under_an_answer_fails_it_until_the_bank_is_back) {
  const std::string bytes = Bytes();
  const Generation generation = Generate(session, kQuestion);
  std::filesystem::resize_file(bank, 100);
  for (int attempt = 0; attempt < 3; ++attempt) BOOST_TEST(Next(generation) == WASTE_ERR_CORRUPT);
  // What was asked for is in the session, and no other call minds.
  const auto held = Tokens(session).size();
  BOOST_TEST(held > 10u);
  waste_stats stats = Sized<waste_stats>();
  BOOST_TEST(waste_generation_stats(generation.get(), &stats, nullptr) == 0);
  BOOST_TEST(waste_session_stats(session.get(), &stats, nullptr) == 0);
  BOOST_TEST(Tokens(session).size() == held);
  WriteFile(bank, bytes);  // in place: the open file has its bytes again
  BOOST_TEST(Drain(generation).text == kAnswer);
  BOOST_TEST(Ask(session, "What is 7 + 12?").text == "7 + 12 = 19.");
}

BOOST_AUTO_TEST_CASE(a_session_whose_evaluation_failed_holds_what_it_held) {
  waste_info info = Sized<waste_info>();
  Require(waste_model_info(model.get(), &info, nullptr) == 0, "no info");
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5};
  std::vector<float> expected(static_cast<size_t>(info.vocab_size)), logits = expected;
  const auto evaluate = [&](int64_t count, std::vector<float>& out) {
    return waste_eval(session.get(), tokens.data(), count, out.data(), info.vocab_size, nullptr);
  };
  BOOST_TEST(evaluate(5, expected) == info.vocab_size);
  BOOST_REQUIRE(waste_session_rewind(session.get(), 0, nullptr) == 0);
  const std::string bytes = Bytes();
  std::filesystem::resize_file(bank, 100);
  BOOST_TEST(evaluate(5, logits) == WASTE_ERR_CORRUPT);
  BOOST_TEST(Tokens(session).empty());
  WriteFile(bank, bytes);
  BOOST_TEST(evaluate(5, logits) == info.vocab_size);
  BOOST_TEST(logits == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_bank_that_was_replaced_is_not_noticed) {
  const Generation generation = Generate(session, kQuestion);
  BOOST_TEST(Next(generation) > 0);
  WriteFile(bank + ".new", std::string(Bytes().size(), 'x'));
  std::filesystem::rename(bank + ".new", bank);  // the open file is the old one
  std::string rest = Drain(generation).text;
  BOOST_TEST(std::string(kAnswer).ends_with(rest));
  BOOST_TEST(!rest.empty());
  BOOST_TEST(Ask(session, "What is 7 + 12?").text == "7 + 12 = 19.");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
