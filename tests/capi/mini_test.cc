// SPDX-License-Identifier: Apache-2.0
//
// The mini model through the C API: true answers, and the standing rule that placement (budget,
// threads, I/O, cache) decides speed and never results.

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <fstream>

#include "support/capi.h"

namespace waste_test {
namespace {

waste_open_options OpenOptions() { return Sized<waste_open_options>(); }

waste_memory_plan Plan(const waste_open_options& options) {
  waste_memory_plan plan = Sized<waste_memory_plan>();
  BOOST_REQUIRE(waste_plan(MiniModel().c_str(), -1, &options, &plan, nullptr) == 0);
  return plan;
}

constexpr const char* kQuestions[] = {"What is the capital of Italy?",
                                      "What is the chemical symbol of iron?", "Count from 3 to 12.",
                                      "Tell me a story about a fox."};

// Everything that could differ: text, tokens and the logits of a raw session.
struct Behaviour {
  std::vector<std::string> texts;
  std::vector<int32_t> tokens;
  std::vector<float> logits;

  bool operator==(const Behaviour& other) const {
    return texts == other.texts && tokens == other.tokens && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

Behaviour BehaviourOf(const Model& model) {
  Behaviour behaviour;
  const Session session = NewSession(model);
  for (const char* question : kQuestions) behaviour.texts.push_back(Ask(session, question).text);
  behaviour.tokens = Tokens(session);
  waste_info info = Sized<waste_info>();
  Require(waste_model_info(model.get(), &info, nullptr) == 0, "no info");
  behaviour.logits.resize(static_cast<size_t>(info.vocab_size) * 3);
  const Session raw = NewSession(model);
  const int64_t floats = info.vocab_size * 3;
  Require(waste_eval(raw.get(), behaviour.tokens.data(), 150, behaviour.logits.data(), floats,
                     nullptr) == floats,
          "no logits");
  return behaviour;
}

BOOST_AUTO_TEST_SUITE(mini)

BOOST_AUTO_TEST_CASE(true_answers_in_many_scripts) {
  const Model model = Open(MiniModel());
  const Session session = NewSession(model);
  struct {
    const char* question;
    const char* answer;
  } const kCases[] = {
      {"What is the capital of Italy?", "The capital of Italy is Rome."},
      {"What is the chemical symbol of iron?", "The chemical symbol of iron is Fe."},
      {"What is 7 + 12?", "7 + 12 = 19."},
      {"Say hello in Japanese.", "こんにちは!"},
      {"Send me a family.", "👨‍👩‍👧‍👦"}};
  for (const auto& c : kCases) BOOST_TEST(Ask(session, c.question).text == c.answer);
}

BOOST_AUTO_TEST_CASE(conversation_is_remembered) {
  const Model model = Open(MiniModel());
  const Session session = NewSession(model);
  Ask(session, "My name is Clara.");
  BOOST_TEST(Ask(session, "What is my name?").text == "Your name is Clara.");
}

BOOST_AUTO_TEST_CASE(thinking_comes_in_its_own_channel) {
  const Model model = Open(MiniModel());
  waste_session_options options = Sized<waste_session_options>();
  options.thinking = 1;
  const Answer answer = Ask(NewSession(model, &options), "What is the capital of Italy?");
  BOOST_TEST(answer.thinking == "Italy: capital Rome.");
  BOOST_TEST(answer.text == "The capital of Italy is Rome.");
}

BOOST_AUTO_TEST_CASE(placement_changes_nothing, *boost::unit_test::label("slow")) {
  const Behaviour expected = BehaviourOf(Open(MiniModel()));
  const waste_memory_plan plan = Plan(OpenOptions());
  const int64_t working_set = (plan.recommended_bytes - plan.floor_bytes) / 2;
  struct {
    const char* what;
    int64_t budget;
    int32_t threads;
    int32_t io;
    int32_t verify;
    int32_t lookahead;
    int32_t lanes;
  } const kCases[] = {
      {"floor, with room for the second session", plan.floor_bytes + plan.state_bytes, 1,
       WASTE_IO_BUFFERED, 0, 1, 1},
      {"the same without lookahead", plan.floor_bytes + plan.state_bytes, 2, WASTE_IO_DIRECT, 0, 2,
       8},
      {"one working set more", plan.floor_bytes + plan.state_bytes + working_set, 2,
       WASTE_IO_DIRECT, 1, 0, 0},
      {"the same with what that one learned", plan.floor_bytes + plan.state_bytes + working_set, 2,
       WASTE_IO_DIRECT, 0, 0, 32},
      {"all threads", 0, 4, WASTE_IO_DIRECT, 0, 0, 0},
      {"three threads, buffered", plan.recommended_bytes + plan.state_bytes, 3, WASTE_IO_BUFFERED,
       1, 2, 3},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.what) {
      waste_open_options options = OpenOptions();
      options.budget_bytes = c.budget;
      options.threads = c.threads;
      options.io = c.io;
      options.verify = c.verify;
      options.lookahead = c.lookahead;
      options.read_lanes = c.lanes;
      BOOST_TEST((BehaviourOf(Open(MiniModel(), &options)) == expected));
    }
  }
}

// Up to 32 tokens read at once are computed as those of an answer are; more are a prompt.
BOOST_AUTO_TEST_CASE(few_tokens_at_once_give_the_bits_of_one_by_one) {
  const Model model = Open(MiniModel());
  waste_info info = Sized<waste_info>();
  Require(waste_model_info(model.get(), &info, nullptr) == 0, "no info");
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 33; ++i) tokens.push_back(100 + 7 * i);
  const auto logits = [&](int64_t count, int64_t at_once) {
    const Session session = NewSession(model);
    std::vector<float> out(static_cast<size_t>(info.vocab_size));
    for (int64_t at = 0; at < count; at += at_once)
      Require(waste_eval(session.get(), tokens.data() + at, std::min(at_once, count - at),
                         out.data(), info.vocab_size, nullptr) == info.vocab_size,
              "no logits");
    return out;
  };
  BOOST_TEST((logits(32, 32) == logits(32, 1)));
  BOOST_TEST((logits(20, 20) == logits(20, 1)));
  BOOST_TEST((logits(33, 33) != logits(33, 1)));
}

BOOST_AUTO_TEST_CASE(every_instruction_set_gives_the_same_text, *boost::unit_test::label("slow")) {
  const Behaviour expected = BehaviourOf(Open(MiniModel()));
  int32_t ran = 0;
  for (const int32_t isa : {WASTE_ISA_SCALAR, WASTE_ISA_AVX2, WASTE_ISA_AVX512,
                            WASTE_ISA_AVX512_VBMI, WASTE_ISA_NEON}) {
    waste_open_options options = OpenOptions();
    options.isa = isa;
    waste_model* opened = nullptr;
    const int32_t status = waste_open(MiniModel().c_str(), -1, &options, &opened, nullptr);
    if (status == WASTE_ERR_UNSUPPORTED) continue;
    BOOST_REQUIRE(status == 0);
    const Model model(opened);
    waste_info info = Sized<waste_info>();
    waste_model_info(model.get(), &info, nullptr);
    BOOST_TEST(info.isa == isa);
    BOOST_TEST(BehaviourOf(model).texts == expected.texts, boost::test_tools::per_element());
    ++ran;
  }
  BOOST_TEST(ran >= 1);
}

BOOST_AUTO_TEST_CASE(saved_session_continues_in_another_model_with_the_same_tokens) {
  const TemporaryFolder folder;
  const std::string file = folder.File("session with spaces и emoji 🚀");
  std::string uninterrupted;
  {
    const Model model = Open(MiniModel());
    const Session session = NewSession(model);
    Ask(session, "My name is Clara.");
    BOOST_TEST(waste_session_save(session.get(), file.c_str(), -1, nullptr) == 0);
    uninterrupted = Ask(session, "What is my name?").text;
    BOOST_TEST(uninterrupted == "Your name is Clara.");
  }
  const Model model = Open(MiniModel());
  const Session session = NewSession(model);
  BOOST_TEST(waste_session_load(session.get(), file.c_str(), -1, nullptr) == 0);
  BOOST_TEST(Ask(session, "What is my name?").text == uninterrupted);
}

BOOST_AUTO_TEST_CASE(rewind_past_a_snapshot_gives_the_text_of_a_fresh_session) {
  const Model model = Open(MiniModel());
  const Session session = NewSession(model);
  const std::string first = Ask(session, kQuestions[0]).text;
  const int64_t mark = static_cast<int64_t>(Tokens(session).size());
  for (int i = 0; i < 8; ++i) Ask(session, "Count from 3 to 12.");
  BOOST_TEST(Tokens(session).size() > 300u);
  BOOST_TEST(waste_session_rewind(session.get(), mark, nullptr) == 0);
  const std::string again = Ask(session, kQuestions[1]).text;
  const Session fresh = NewSession(model);
  BOOST_TEST(Ask(fresh, kQuestions[0]).text == first);
  BOOST_TEST(Ask(fresh, kQuestions[1]).text == again);
}

BOOST_AUTO_TEST_CASE(same_seed_gives_the_same_text_and_other_seeds_others) {
  const Model model = Open(MiniModel());
  waste_generation_options options = Sized<waste_generation_options>();
  options.temperature = 1.5;
  options.max_tokens = 40;
  const auto story = [&](int64_t seed) {
    options.seed = seed;
    return Ask(NewSession(model), "Tell me a story about a fox.", &options).text;
  };
  BOOST_TEST(story(1) == story(1));
  BOOST_TEST(story(1) != story(2));
}

BOOST_AUTO_TEST_CASE(plan_is_a_sum_and_the_floor_is_a_limit) {
  const waste_memory_plan plan = Plan(OpenOptions());
  BOOST_TEST(plan.floor_bytes ==
             plan.trunk_bytes + plan.state_bytes + plan.scratch_bytes + plan.staging_bytes);
  BOOST_TEST(plan.fits == 1);
  waste_open_options options = OpenOptions();
  options.budget_bytes = plan.floor_bytes - 1;
  waste_error error = NewError();
  waste_model* model = nullptr;
  BOOST_TEST(waste_open(MiniModel().c_str(), -1, &options, &model, &error) == WASTE_ERR_RAM_BUDGET);
  BOOST_TEST(error.needed_bytes == plan.floor_bytes);
  options.budget_bytes = plan.floor_bytes;
  BOOST_TEST(Ask(NewSession(Open(MiniModel(), &options)), kQuestions[0]).text ==
             "The capital of Italy is Rome.");
}

BOOST_AUTO_TEST_CASE(counters_are_exact) {
  const waste_memory_plan plan = Plan(OpenOptions());
  waste_open_options options = OpenOptions();
  options.budget_bytes = plan.floor_bytes;
  const Model model = Open(MiniModel(), &options);
  const Session session = NewSession(model);
  const int32_t token = 65;
  for (int i = 0; i < 3; ++i) waste_eval(session.get(), &token, 1, nullptr, 0, nullptr);
  waste_stats stats = Sized<waste_stats>();
  waste_info info = Sized<waste_info>();
  waste_model_stats(model.get(), &stats, nullptr);
  waste_model_info(model.get(), &info, nullptr);
  BOOST_TEST(stats.prompt_tokens == 3);
  BOOST_TEST(stats.experts_hit + stats.experts_missed == 3 * 7 * info.experts_per_token);
  BOOST_TEST(stats.experts_foreseen <= stats.experts_missed);
  BOOST_TEST(stats.speculative_bytes == stats.speculative_reads * info.expert_bytes);
  // What was guessed and not needed is read beyond what was missed.
  BOOST_TEST(stats.bytes_read % info.expert_bytes == 0);
  BOOST_TEST(stats.bytes_read >=
             (stats.experts_missed - stats.experts_foreseen) * info.expert_bytes +
                 stats.speculative_bytes);
  BOOST_TEST(stats.bytes_read <=
             stats.experts_missed * info.expert_bytes + stats.speculative_bytes);
}

// A copy of the container with one file changed.
struct Damage {
  const char* file;
  int64_t at;  // from the end if negative; INT64_MIN removes the file
  int32_t code;
  const char* said;
};

BOOST_AUTO_TEST_CASE(damaged_container_is_refused_by_name_or_ends_in_an_error) {
  const Damage kCases[] = {
      {"manifest.json", INT64_MIN, WASTE_ERR_IO, "manifest.json"},
      {"manifest.json", 0, WASTE_ERR_FORMAT, "manifest.json"},
      {"trunk.bin", INT64_MIN, WASTE_ERR_IO, "trunk.bin"},
      {"experts-L3.bin", INT64_MIN, WASTE_ERR_IO, "experts-L3.bin"},
      {"tokenizer.model", INT64_MIN, WASTE_ERR_IO, "tokenizer.model"},
      {"codebooks.bin", 0, WASTE_ERR_FORMAT, "codebooks.bin"},
  };
  for (const Damage& c : kCases) {
    BOOST_TEST_CONTEXT(c.file << " at " << c.at) {
      const TemporaryFolder folder;
      const std::string copy = folder.File("copy.waste");
      std::filesystem::copy(MiniModel(), copy);
      const std::string victim = copy + "/" + c.file;
      if (c.at == INT64_MIN) {
        std::filesystem::remove(victim);
      } else {
        std::fstream file(victim, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(c.at);
        file.put('\x7F');
      }
      waste_error error = NewError();
      waste_model* model = nullptr;
      const int32_t status = waste_open(copy.c_str(), -1, nullptr, &model, &error);
      BOOST_TEST(status == c.code, error.message);
      BOOST_TEST(std::string(error.message).find(c.said) != std::string::npos, error.message);
      waste_free(model);
    }
  }
}

BOOST_AUTO_TEST_CASE(damaged_expert_names_bank_and_expert_and_leaves_the_session_usable) {
  const TemporaryFolder folder;
  const std::string copy = folder.File("copy.waste");
  std::filesystem::copy(MiniModel(), copy);
  // Break the header of every expert of layer 3: whichever is asked for first is named.
  const std::string bank = copy + "/experts-L3.bin";
  const int64_t record = static_cast<int64_t>(std::filesystem::file_size(bank)) / 32;
  const auto flip = [&] {
    std::fstream file(bank, std::ios::in | std::ios::out | std::ios::binary);
    for (int64_t e = 0; e < 32; ++e) {
      file.seekg(e * record);
      const int byte = file.get();
      file.seekp(e * record);
      file.put(static_cast<char>(byte ^ 0x55));
    }
  };
  waste_open_options options = OpenOptions();
  options.io = WASTE_IO_BUFFERED;
  flip();  // opening reads no expert, and what fills the cache takes in none that is broken
  const Model model = Open(copy, &options);
  const Session session = NewSession(model);
  const Generation generation = Generate(session, kQuestions[0]);
  char buffer[64];
  waste_error error = NewError();
  BOOST_TEST(waste_next(generation.get(), buffer, sizeof buffer, nullptr, &error) ==
             WASTE_ERR_FORMAT);
  BOOST_TEST(std::string(error.message).find("bank 3, expert ") != std::string::npos,
             error.message);
  flip();
  BOOST_TEST(Drain(generation).text == "The capital of Italy is Rome.");
}

BOOST_AUTO_TEST_CASE(verify_finds_a_flipped_bit_that_opening_does_not_look_for) {
  const TemporaryFolder folder;
  const std::string copy = folder.File("copy.waste");
  std::filesystem::copy(MiniModel(), copy);
  const auto verify = [&](waste_error& error) {
    waste_job* job = nullptr;
    BOOST_REQUIRE(waste_verify(copy.c_str(), -1, &job, nullptr) == 0);
    return waste_job_wait(Job(job).get(), -1, &error);
  };
  waste_error error = NewError();
  BOOST_TEST(verify(error) == 0, error.message);
  std::fstream file(copy + "/experts-L5.bin", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(16384 * 9 + 5000);
  file.put('\x11').flush();
  BOOST_TEST(verify(error) == WASTE_ERR_CORRUPT);
  BOOST_TEST(std::string(error.message).find("bank 5, expert 9") != std::string::npos,
             error.message);
}

BOOST_AUTO_TEST_CASE(a_synthetic_model_runs_and_stays_finite) {
  const TemporaryFolder folder;
  const std::string path = folder.File("synthetic.waste");
  waste_synthesis_options options = Sized<waste_synthesis_options>();
  options.seed = 3;
  waste_job* started = nullptr;
  BOOST_REQUIRE(waste_synthesize("mini", -1, path.c_str(), -1, &options, &started, nullptr) == 0);
  const Job job(started);
  BOOST_REQUIRE(waste_job_wait(job.get(), -1, nullptr) == 0);
  const Model model = Open(path);
  waste_info info = Sized<waste_info>();
  BOOST_REQUIRE(waste_model_info(model.get(), &info, nullptr) == 0);
  BOOST_TEST(info.token_flops > 2 * info.vocab_size * info.hidden_size);
  BOOST_TEST(info.token_trunk_bytes > info.vocab_size * info.hidden_size);
  const Session session = NewSession(model);
  std::vector<int32_t> tokens(200);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 1900);
  std::vector<float> logits(static_cast<size_t>(info.vocab_size));
  BOOST_REQUIRE(waste_eval(session.get(), tokens.data(), std::ssize(tokens), logits.data(),
                           std::ssize(logits), nullptr) == std::ssize(logits));
  for (const float logit : logits) BOOST_REQUIRE(std::isfinite(logit));
}

BOOST_AUTO_TEST_CASE(a_shape_that_is_not_there_is_refused_by_name) {
  waste_error error = NewError();
  waste_job* job = nullptr;
  BOOST_TEST(waste_synthesize("k4", -1, "nowhere", -1, nullptr, &job, &error) ==
             WASTE_ERR_ARGUMENT);
  BOOST_TEST(std::strstr(error.message, "kimi-linear-48b") != nullptr);
  waste_synthesis_options options = Sized<waste_synthesis_options>();
  options.experts = 3;
  BOOST_TEST(waste_synthesize("mini", -1, "nowhere", -1, &options, &job, &error) ==
             WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
