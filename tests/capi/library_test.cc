// SPDX-License-Identifier: Apache-2.0
//
// The library as a whole: the header as C99, exported names, versions, struct sizes, handles.

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "support/capi.h"

extern "C" int64_t header_c99_ask(const char* path, const char* prompt, char* text,
                                  int64_t text_size);

namespace waste_test {
namespace {

BOOST_AUTO_TEST_SUITE(library)

BOOST_AUTO_TEST_CASE(c99_program_gets_an_answer) {
  const Scripted script(R"({"answers": [["Hello ", "C"]]})");
  char text[100];
  BOOST_TEST(header_c99_ask(script.path().c_str(), "Hi", text, sizeof text) == 0);
  BOOST_TEST(std::string(text) == "Hello C");
}

BOOST_AUTO_TEST_CASE(exported_names_are_the_golden_ones) {
  std::ifstream golden(WASTE_SOURCE_DIR "/capi/exports.txt");
  std::set<std::string> expected{std::istream_iterator<std::string>(golden), {}};
  std::set<std::string> exported;
  FILE* nm = popen("nm -D --defined-only '" WASTE_LIBRARY "'", "r");
  BOOST_REQUIRE(nm != nullptr);
  char line[512], name[400], kind[8];
  while (fgets(line, sizeof line, nm) != nullptr)
    if (sscanf(line, "%*s %7s %399s", kind, name) == 2 && kind[0] == 'T')
      exported.insert(std::string(name).substr(0, std::string(name).find('@')));
  BOOST_TEST(pclose(nm) == 0);
  BOOST_TEST(exported == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(version_is_told_whole_or_cut) {
  BOOST_TEST(waste_abi_version() == WASTE_ABI_VERSION);
  char buffer[16] = "";
  const int64_t size = waste_version(buffer, sizeof buffer);
  BOOST_TEST(size == static_cast<int64_t>(std::string(buffer).size()));
  BOOST_TEST(waste_version(nullptr, 0) == size);
  BOOST_TEST(waste_version(nullptr, 5) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(struct_sizes_are_those_of_this_header) {
  int32_t sizes[16] = {};
  BOOST_TEST(waste_abi_sizes(sizes, 16) == 11);
  BOOST_TEST(sizes[0] == static_cast<int32_t>(sizeof(waste_error)));
  BOOST_TEST(sizes[3] == static_cast<int32_t>(sizeof(waste_generation_options)));
  BOOST_TEST(sizes[9] == static_cast<int32_t>(sizeof(waste_progress)));
  BOOST_TEST(sizes[10] == static_cast<int32_t>(sizeof(waste_synthesis_options)));
  int32_t one = 0;
  BOOST_TEST(waste_abi_sizes(&one, 1) == 11);
  BOOST_TEST(one == sizes[0]);
}

BOOST_AUTO_TEST_CASE(free_and_cancel_take_null_and_foreign_kinds) {
  waste_free(nullptr);
  waste_cancel(nullptr);
  const Scripted script(R"({"answers": [["x"]]})");
  waste_cancel(script.model.get());  // a model cannot be cancelled; nothing happens
  BOOST_TEST(Ask(NewSession(script.model), "a").text == "x");
}

BOOST_AUTO_TEST_CASE(handle_of_another_kind_is_an_argument_error) {
  const Scripted script(R"({"answers": [["x"]]})");
  const Session session = NewSession(script.model);
  waste_error error = NewError();
  waste_info info = Sized<waste_info>();
  auto* wrong = reinterpret_cast<waste_model*>(session.get());
  BOOST_TEST(waste_model_info(wrong, &info, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(std::string(error.message) == "the handle given as a model is not one");
  BOOST_TEST(waste_model_info(nullptr, &info, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_session_create(wrong, nullptr, nullptr, &error) == WASTE_ERR_ARGUMENT);
  BOOST_TEST(waste_next(nullptr, nullptr, 0, nullptr, &error) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(handles_may_be_freed_in_any_order) {
  // Each permutation of freeing model, session and generation, before and during an answer.
  for (int order = 0; order < 6; ++order)
    for (const bool started : {false, true}) {
      const Scripted script(R"({"answers": [["a", "b", {"repeat": "c"}]]})");
      Model model = Open(script.path());
      Session session = NewSession(model);
      Generation generation = Generate(session, "hi");
      char buffer[16];
      if (started) BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
      const int sequence[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
      for (const int which : sequence[order]) {
        if (which == 0) model.reset();
        if (which == 1) session.reset();
        if (which == 2) generation.reset();
        if (generation) BOOST_TEST(waste_next(generation.get(), buffer, 16, nullptr, nullptr) == 1);
      }
    }
}

BOOST_AUTO_TEST_CASE(older_and_newer_structs_are_understood) {
  const Scripted script(R"({"answers": [[{"repeat": "x"}]]})");
  const Session session = NewSession(script.model);

  struct {
    waste_generation_options known;
    int64_t future;
  } newer{};
  newer.known.struct_size = sizeof newer;
  newer.known.max_tokens = 3;
  waste_generation* generation = nullptr;
  BOOST_TEST(waste_generate(session.get(), "a", -1, &newer.known, &generation, nullptr) == 0);
  BOOST_TEST(Drain(Generation(generation)).text == "xxx");
  newer.future = 1;
  waste_error error = NewError();
  BOOST_TEST(waste_generate(session.get(), "a", -1, &newer.known, &generation, &error) ==
             WASTE_ERR_ARGUMENT);

  waste_generation_options older{};
  older.struct_size = 8;  // knows max_tokens only; what follows is not read
  older.max_tokens = 2;
  older.temperature = -1;
  BOOST_TEST(waste_generate(session.get(), "a", -1, &older, &generation, nullptr) == 0);
  BOOST_TEST(Drain(Generation(generation)).text == "xx");

  waste_stats small{};
  small.struct_size = 16;
  small.context = -7;
  BOOST_TEST(waste_session_stats(session.get(), &small, nullptr) == 0);
  BOOST_TEST(small.position > 0);
  BOOST_TEST(small.context == -7);  // beyond what the caller said it has
  small.struct_size = 0;
  BOOST_TEST(waste_session_stats(session.get(), &small, &error) == WASTE_ERR_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(option_structs_are_initialised_to_their_size) {
  waste_open_options options;
  waste_open_options_init(&options, sizeof options);
  BOOST_TEST(options.struct_size == sizeof options);
  BOOST_TEST(options.budget_bytes == 0);
  waste_open_options_init(nullptr, 8);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
