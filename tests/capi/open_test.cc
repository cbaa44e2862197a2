// SPDX-License-Identifier: Apache-2.0
//
// Opening, planning, jobs and logs; on scripted models and on files that are no models.

#include <boost/test/unit_test.hpp>

#include <chrono>

#include "support/capi.h"

namespace waste_test {
namespace {

BOOST_AUTO_TEST_SUITE(opening)

BOOST_AUTO_TEST_CASE(what_cannot_be_opened_is_named) {
  const TemporaryFolder folder;
  WriteFile(folder.File("not.json"), "{");
  WriteFile(folder.File("typo.json"), R"({"answers": [["a"]], "contxt": 5})");
  WriteFile(folder.File("broken.json"),
            R"({"answers": [["a"]], "open_error": {"error": "CORRUPT", "message": "bank 7"}})");
  struct {
    std::string path;
    int32_t code;
    const char* said;
  } const kCases[] = {
      {folder.File("missing.waste"), WASTE_ERR_IO, "missing.waste"},
      {folder.File("not.json"), WASTE_ERR_IO, "not.json"},  // a file is no container
      {"test:" + folder.File("missing"), WASTE_ERR_IO, "missing"},
      {"test:" + folder.File("not.json"), WASTE_ERR_FORMAT, "not.json"},
      {"test:" + folder.File("typo.json"), WASTE_ERR_FORMAT, "contxt"},
      {"test:" + folder.File("broken.json"), WASTE_ERR_CORRUPT, "bank 7"},
      {"", WASTE_ERR_ARGUMENT, "path is empty"},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.path) {
      waste_error error = NewError();
      waste_model* model = nullptr;
      BOOST_TEST(waste_open(c.path.c_str(), -1, nullptr, &model, &error) == c.code);
      BOOST_TEST(error.code == c.code);
      BOOST_TEST(model == nullptr);
      BOOST_TEST(std::string(error.message).find(c.said) != std::string::npos, error.message);
    }
  }
  waste_model* model = nullptr;
  BOOST_TEST(waste_open("a\0b", 3, nullptr, &model, nullptr) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_open("a", -2, nullptr, &model, nullptr) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_open(nullptr, 0, nullptr, &model, nullptr) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(budget_below_the_floor_is_refused_with_the_number) {
  const Scripted script(R"({"floor_bytes": 1000000, "answers": [["a"]]})");
  waste_open_options options = Sized<waste_open_options>();
  options.budget_bytes = 999999;
  waste_memory_plan plan = Sized<waste_memory_plan>();
  BOOST_TEST(waste_plan(script.path().c_str(), -1, &options, &plan, nullptr) == 0);
  BOOST_TEST(plan.fits == 0);
  BOOST_TEST(plan.floor_bytes == 1000000);
  waste_error error = NewError();
  waste_model* model = nullptr;
  BOOST_TEST(waste_open(script.path().c_str(), -1, &options, &model, &error) ==
             WASTE_ERR_RAM_BUDGET);
  BOOST_TEST(error.needed_bytes == 1000000);
  options.budget_bytes = 1000000;
  BOOST_TEST(NewSession(Open(script.path(), &options)).get() != nullptr);
}

BOOST_AUTO_TEST_CASE(sessions_are_charged_and_given_back) {
  // 4,096 positions of 9 bytes each: the budget has room for exactly two sessions.
  const Scripted script(R"({"floor_bytes": 1000000, "answers": [["a"]]})");
  waste_open_options options = Sized<waste_open_options>();
  options.budget_bytes = 1000000 + 36864;
  const Model model = Open(script.path(), &options);
  Session first = NewSession(model);
  const Session second = NewSession(model);
  waste_error error = NewError();
  waste_session* third = nullptr;
  BOOST_TEST(waste_session_create(model.get(), nullptr, &third, &error) == WASTE_ERR_RAM_BUDGET);
  BOOST_TEST(error.needed_bytes == 1000000 + 2 * 36864);
  first.reset();
  BOOST_TEST(waste_session_create(model.get(), nullptr, &third, &error) == 0);
  waste_free(third);
  waste_stats stats = Sized<waste_stats>();
  BOOST_TEST(waste_model_stats(model.get(), &stats, nullptr) == 0);
  BOOST_TEST(stats.memory_bytes == 1000000);
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  const Scripted script(R"({"context": 100, "answers": [["a"]]})");
  const auto code = [&](auto change) {
    waste_open_options options = Sized<waste_open_options>();
    change(options);
    waste_model* model = nullptr;
    const int32_t status = waste_open(script.path().c_str(), -1, &options, &model, nullptr);
    waste_free(model);
    return status;
  };
  BOOST_TEST(code([](auto& o) { o.io = 3; }) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(code([](auto& o) { o.isa = 9; }) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(code([](auto& o) { o.verify = -1; }) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(code([](auto& o) { o.arithmetic = 2; }) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(code([](auto& o) { o.context = 101; }) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(code([](auto& o) { o.context = 100; }) == WASTE_OK);
}

BOOST_AUTO_TEST_CASE(open_job_hands_its_model_over_once) {
  const Scripted script(R"({"open_stall_ms": 30, "answers": [["a"]]})");
  waste_job* started = nullptr;
  BOOST_TEST(waste_open_job(script.path().c_str(), -1, nullptr, &started, nullptr) == 0);
  const Job job(started);
  waste_model* model = nullptr;
  BOOST_TEST(waste_job_wait(job.get(), -1, nullptr) == 0);
  waste_progress progress = Sized<waste_progress>();
  BOOST_TEST(waste_job_progress(job.get(), &progress, nullptr) == 0);
  BOOST_TEST(progress.finished == 1);
  BOOST_TEST(progress.done == progress.total);
  BOOST_TEST(waste_job_model(job.get(), &model, nullptr) == 0);
  const Model owned(model);
  BOOST_TEST(Ask(NewSession(owned), "hi").text == "a");
  BOOST_TEST(waste_job_model(job.get(), &model, nullptr) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(cancelled_open_ends_within_a_second) {
  const Scripted script(R"({"answers": [["a"]]})");
  WriteFile(script.folder().File("slow.json"), R"({"open_stall_ms": 60000, "answers": [["a"]]})");
  const std::string slow = "test:" + script.folder().File("slow.json");
  waste_job* started = nullptr;
  BOOST_TEST(waste_open_job(slow.c_str(), -1, nullptr, &started, nullptr) == 0);
  const Job job(started);
  BOOST_TEST(waste_job_wait(job.get(), 20, nullptr) == WASTE_RUNNING);
  const auto start = std::chrono::steady_clock::now();
  waste_cancel(job.get());
  waste_error error = NewError();
  BOOST_TEST(waste_job_wait(job.get(), -1, &error) == WASTE_ERR_CANCELLED);
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(1)));
  waste_model* model = nullptr;
  BOOST_TEST(waste_job_model(job.get(), &model, nullptr) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(freed_job_stops_its_work) {
  const Scripted script(R"({"open_stall_ms": 0, "answers": [["a"]]})");
  WriteFile(script.folder().File("slow.json"), R"({"open_stall_ms": 60000, "answers": [["a"]]})");
  const std::string slow = "test:" + script.folder().File("slow.json");
  const auto start = std::chrono::steady_clock::now();
  waste_job* job = nullptr;
  BOOST_TEST(waste_open_job(slow.c_str(), -1, nullptr, &job, nullptr) == 0);
  waste_free(job);
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(1)));
}

BOOST_AUTO_TEST_CASE(log_is_silent_until_there_is_something_to_say) {
  const Scripted script(R"({"answers": [["a"]]})");
  char line[64];
  BOOST_TEST(waste_log_next(script.model.get(), line, sizeof line, nullptr) == 0);
  const Session session = NewSession(script.model);
  BOOST_TEST(waste_log_next(session.get(), line, sizeof line, nullptr) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(failures_of_conversion_and_verification_come_from_the_job) {
  const TemporaryFolder folder;
  waste_job* started = nullptr;
  BOOST_TEST(waste_convert(folder.File("no").c_str(), -1, folder.File("out").c_str(), -1, nullptr,
                           &started, nullptr) == 0);
  waste_error error = NewError();
  BOOST_TEST(waste_job_wait(Job(started).get(), -1, &error) == WASTE_ERR_IO);
  BOOST_TEST(!std::filesystem::exists(folder.File("out")));
  BOOST_TEST(waste_verify(folder.File("no").c_str(), -1, &started, nullptr) == 0);
  BOOST_TEST(waste_job_wait(Job(started).get(), -1, &error) == WASTE_ERR_IO);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
