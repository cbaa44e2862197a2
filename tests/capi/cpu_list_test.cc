// SPDX-License-Identifier: Apache-2.0
//
// The option cpu_list: where a model's threads run, seen from outside through the system's own
// files, and that a caller's thread comes back to where it was.

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/capi.h"
#include "support/granted_cpus.h"

namespace waste_test {
namespace {

constexpr char kQuestion[] = "What is the capital of Italy?";

waste_open_options OnCpus(const char* cpu_list, int32_t threads = 0) {
  waste_open_options options = Sized<waste_open_options>();
  options.cpu_list = cpu_list;
  options.threads = threads;
  return options;
}

std::string FirstCpu() { return std::to_string(CpusOfThisThread().front()); }
std::string LastCpu() { return std::to_string(CpusOfThisThread().back()); }

int32_t ThreadsOf(const Model& model) {
  waste_info info = Sized<waste_info>();
  Require(waste_model_info(model.get(), &info, nullptr) == 0, "no info");
  return info.threads;
}

// Where thread `id` of this process may run, as the kernel prints it; empty if it has ended.
std::string PlaceOf(const std::string& id) {
  std::ifstream file("/proc/self/task/" + id + "/status");
  const std::string name = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return line.substr(name.size());
  return "";
}

// The CPU that it ran on last, which is field 39 of its line; the second one has parentheses.
std::string LastCpuOf(const std::string& id) {
  std::ifstream file("/proc/self/task/" + id + "/stat");
  std::string word;
  while (file >> word && !word.ends_with(')')) {
  }
  for (int field = 3; field <= 39; ++field) file >> word;
  return word;
}

std::set<std::string> ThreadsOn(const std::string& place) {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (const std::string id = task.path().filename(); PlaceOf(id) == place) ids.insert(id);
  return ids;
}

std::string ThisThread() { return std::to_string(gettid()); }

// The answer of a model that `options` open.
std::string TextOn(const waste_open_options& options) {
  return Ask(NewSession(Open(MiniModel(), &options)), kQuestion).text;
}

BOOST_AUTO_TEST_SUITE(cpu_list)

BOOST_AUTO_TEST_CASE(a_list_changes_no_text, *boost::unit_test::precondition(HasOneCpu)) {
  const std::string text = TextOn(Sized<waste_open_options>());
  const std::string first = FirstCpu(), both = first + "," + LastCpu();
  for (const std::string& list : {std::string(), first, both})
    BOOST_TEST(TextOn(OnCpus(list.c_str())) == text);
  BOOST_TEST(TextOn(OnCpus(first.c_str(), 3)) == text);
}

BOOST_AUTO_TEST_CASE(threads_are_told_as_obtained, *boost::unit_test::precondition(HasTwoCpus)) {
  const std::string one = LastCpu(), both = FirstCpu() + "," + one;
  const auto told = [](const std::string& list, int32_t threads) {
    const waste_open_options options = OnCpus(list.c_str(), threads);
    return ThreadsOf(Open(MiniModel(), &options));
  };
  BOOST_TEST(told(one, 0) == 1);
  BOOST_TEST(told(both, 0) == 2);
  BOOST_TEST(told(one, 3) == 3);
}

BOOST_AUTO_TEST_CASE(bad_lists_are_refused_by_name, *boost::unit_test::precondition(HasOneCpu)) {
  const Scripted script(R"({"answers": [["a"]]})");
  const std::string long_list(size_t{1} << 20, '7');
  const struct {
    const char* list;
    const char* said;
  } kCases[] = {
      {"x", R"(cpu_list: item 1, "x", is no CPU)"},
      {"0,,1", "item 2 is empty"},
      {"3-1", "ends before it begins"},
      {"99999999999", "is beyond"},
      {long_list.c_str(), "is beyond"},
      {"8191", "and not 8191"},
      {"0-8191", "this process may use the CPUs"},
      {"\xff", "cpu_list is not UTF-8 at byte 0"},
  };
  for (const auto& c : kCases) {
    for (const std::string& path : {MiniModel(), script.path()}) {
      BOOST_TEST_CONTEXT(path << " " << c.said) {
        const waste_open_options options = OnCpus(c.list);
        waste_error error = NewError();
        waste_model* model = nullptr;
        BOOST_TEST(waste_open(path.c_str(), -1, &options, &model, &error) == WASTE_ERR_ARGUMENT);
        BOOST_TEST(model == nullptr);
        BOOST_TEST(std::string(error.message).find(c.said) != std::string::npos, error.message);
        waste_memory_plan plan = Sized<waste_memory_plan>();
        BOOST_TEST(waste_plan(path.c_str(), -1, &options, &plan, nullptr) == WASTE_ERR_ARGUMENT);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_struct_that_ends_before_the_pointer_has_no_list) {
  const Scripted script(R"({"answers": [["a"]]})");
  waste_open_options options = OnCpus("no list");
  for (const size_t size : {offsetof(waste_open_options, cpu_list), sizeof options - 1}) {
    options.struct_size = static_cast<uint32_t>(size);
    BOOST_TEST(ThreadsOf(Open(script.path(), &options)) == 1);
  }
}

BOOST_AUTO_TEST_CASE(the_text_of_a_list_is_not_needed_after_the_call,
                     *boost::unit_test::precondition(HasOneCpu)) {
  std::string list = FirstCpu();
  const waste_open_options options = OnCpus(list.c_str());
  waste_job* started = nullptr;
  BOOST_TEST(waste_open_job(MiniModel().c_str(), -1, &options, &started, nullptr) == 0);
  list.assign(list.size(), 'x');
  const Job job(started);
  waste_error error = NewError();
  BOOST_TEST(waste_job_wait(job.get(), -1, &error) == 0, error.message);
}

// Whether thread `id` is seen on `list` within ten seconds; then `answer` is cancelled.
bool SeeThenCancel(const std::string& id, const std::string& list, waste_generation* answer) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool seen = false;
  while (!seen && std::chrono::steady_clock::now() < end) {
    seen = PlaceOf(id) == list;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  waste_cancel(answer);
  return seen;
}

// While a step stalls, the caller is on the list; after its end, good or bad, where it was.
BOOST_AUTO_TEST_CASE(a_callers_thread_is_put_back_however_its_step_ends,
                     *boost::unit_test::precondition(HasTwoCpus)) {
  const std::string list = LastCpu(), id = ThisThread(), before = PlaceOf(id);
  const waste_open_options options = OnCpus(list.c_str());
  BOOST_TEST(before != list);
  const struct {
    const char* script;
    int32_t status;
  } kCases[] = {
      {R"({"answers": [[{"stall_ms": 1000}, "ok"]]})", WASTE_OK},
      {R"({"answers": [[{"stall_ms": 1000}, "ok", {"error": "IO", "message": "bank 3"}]]})",
       WASTE_ERR_IO},
      {R"({"answers": [[{"stall_ms": 60000}, "never"]]})", WASTE_ERR_CANCELLED},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.script) {
      const Scripted script(c.script, &options);
      const Session session = NewSession(script.model);
      const Generation answer = Generate(session, "go on");
      waste_generation* stopped = c.status == WASTE_ERR_CANCELLED ? answer.get() : nullptr;
      auto seen = std::async(std::launch::async, SeeThenCancel, id, list, stopped);
      BOOST_TEST(Drain(answer).status == c.status);
      BOOST_TEST(PlaceOf(id) == before);
      BOOST_TEST(seen.get());
    }
  }
}

// Somebody who talks to a model of its own in a loop, and the threads that came with the model.
struct Talker {
  explicit Talker(const std::string& cpu) : list(cpu), options(OnCpus(list.c_str(), 3)) {
    const std::set<std::string> before = ThreadsOn(list);
    model = Open(MiniModel(), &options);
    for (const std::string& started : ThreadsOn(list))
      if (!before.contains(started)) workers.insert(started);
  }

  void Start(const std::atomic<bool>& stop) {
    talk = std::async(std::launch::async, [this, &stop] {
      id = ThisThread();
      place = PlaceOf(id);
      ready = true;
      const Session session = NewSession(model);
      std::string text;
      while (!stop) {
        Require(waste_session_reset(session.get(), nullptr) == 0, "no reset");
        text = Ask(session, kQuestion).text;
        Require(PlaceOf(id) == place, "the caller was not put back");
      }
      return text;
    });
    while (!ready) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Whether everything is where it belongs now.
  bool IsInPlace() {
    bool is_so = true;
    for (const std::string& worker : workers)
      is_so = is_so && PlaceOf(worker) == list && LastCpuOf(worker) == list;
    const std::string now = PlaceOf(id);
    caller_seen += now == list ? 1 : 0;
    return is_so && (now == list || now == place);
  }

  std::string list;
  waste_open_options options;
  Model model;
  std::set<std::string> workers;
  std::string id, place;  // of the thread that calls; set once it is ready
  std::atomic<bool> ready{false};
  int caller_seen = 0;  // on the list
  std::future<std::string> talk;
};

BOOST_AUTO_TEST_CASE(two_models_at_once_stay_on_their_cpus_each,
                     *boost::unit_test::precondition(HasTwoCpus)) {
  const std::string text = TextOn(Sized<waste_open_options>());
  Talker one(FirstCpu()), other(LastCpu());
  BOOST_TEST(one.workers.size() == 2u);
  BOOST_TEST(other.workers.size() == 2u);
  std::atomic<bool> stop{false};
  one.Start(stop);
  other.Start(stop);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool in_place = true;
  for (int looks = 0; looks < 100 || one.caller_seen < 10 || other.caller_seen < 10; ++looks) {
    in_place = in_place && one.IsInPlace() && other.IsInPlace();
    if (!in_place || std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  stop = true;
  BOOST_TEST(in_place);
  BOOST_TEST(one.talk.get() == text);
  BOOST_TEST(other.talk.get() == text);
  BOOST_TEST(one.caller_seen >= 10);
  BOOST_TEST(other.caller_seen >= 10);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
