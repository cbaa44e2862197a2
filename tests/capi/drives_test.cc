// SPDX-License-Identifier: Apache-2.0
//
// The mini model with its experts in two folders: what is asked of it gets the same answer whatever
// becomes of one of them, and the log says once what did.

#include <boost/test/unit_test.hpp>

#include <array>
#include <filesystem>
#include <fstream>

#include "support/capi.h"

namespace waste_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kQuestions[] = {"What is the capital of Italy?", "Count from 3 to 12.",
                                      "Tell me a story about a fox."};

// The mini model, and its banks once more in another folder. Opened at its floor, so that every
// token reads experts.
struct TwoFolders {
  TwoFolders() {
    fs::copy(MiniModel(), path());
    fs::create_directory(other());
    for (const std::string& bank : Banks())
      fs::copy_file(path() + "/" + bank, other() + "/" + bank);
    WriteFile(path() + "/drives.json", R"({"folders": ["../other"]})");
  }

  std::string path() const { return folder.File("mini.waste"); }
  std::string other() const { return folder.File("other"); }

  std::vector<std::string> Banks() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path()))
      if (const std::string name = entry.path().filename().string(); name.starts_with("experts-L"))
        names.push_back(name);
    return names;
  }

  Model OpenAtFloor() const {
    waste_open_options options = Sized<waste_open_options>();
    waste_memory_plan plan = Sized<waste_memory_plan>();
    Require(waste_plan(path().c_str(), -1, &options, &plan, nullptr) == 0, "no plan");
    options.budget_bytes = plan.floor_bytes;
    return Open(path(), &options);
  }

  TemporaryFolder folder;
};

std::vector<std::string> Answers(const Session& session) {
  std::vector<std::string> texts;
  for (const char* question : kQuestions) texts.push_back(Ask(session, question).text);
  return texts;
}

std::vector<std::string> Answers(const Model& model) { return Answers(NewSession(model)); }

// What the log has to say of banks; whether reads are direct is another matter.
std::vector<std::string> NotesOn(void* object) {
  std::vector<std::string> notes;
  std::array<char, 4096> line;
  while (waste_log_next(object, line.data(), std::ssize(line), nullptr) > 0)
    if (const std::string note = line.data(); note.find("direct reads") == std::string::npos)
      notes.push_back(note);
  return notes;
}

BOOST_FIXTURE_TEST_SUITE(drives, TwoFolders)

BOOST_AUTO_TEST_CASE(copies_and_stripes_answer_as_one_folder_does) {
  const std::vector<std::string> expected = Answers(Open(MiniModel()));
  const auto check = [&] {
    const Model model = OpenAtFloor();
    BOOST_TEST(Answers(model) == expected, boost::test_tools::per_element());
    BOOST_TEST(NotesOn(model.get()).empty());
    waste_stats stats = Sized<waste_stats>();
    BOOST_TEST(waste_model_stats(model.get(), &stats, nullptr) == 0);
    BOOST_TEST(stats.experts_missed > 0);
  };
  check();
  bool here = false;
  for (const std::string& bank : Banks())
    fs::remove((std::exchange(here, !here) ? path() : other()) + "/" + bank);
  check();
}

BOOST_AUTO_TEST_CASE(banks_cut_while_open_are_read_from_their_copies) {
  const std::vector<std::string> expected = Answers(Open(MiniModel()));
  const Model model = OpenAtFloor();
  Answers(model);
  for (const std::string& bank : Banks()) fs::resize_file(other() + "/" + bank, 0);
  BOOST_TEST(Answers(model) == expected, boost::test_tools::per_element());
  BOOST_TEST(Answers(model) == expected, boost::test_tools::per_element());
  const std::vector<std::string> notes = NotesOn(model.get());
  BOOST_TEST(notes.size() <= Banks().size());  // one each, of those that were asked
  for (const std::string& note : notes)
    BOOST_TEST(note.find("../other/experts-L") != std::string::npos, note);
}

BOOST_AUTO_TEST_CASE(with_every_copy_cut_the_error_names_them_and_the_session_lives) {
  const std::vector<std::string> expected = Answers(Open(MiniModel()));
  const Model model = OpenAtFloor();
  const Session session = NewSession(model);
  fs::create_directory(folder.File("kept"));
  for (const std::string& bank : Banks()) {
    fs::copy_file(path() + "/" + bank, folder.File("kept/" + bank));
    fs::resize_file(path() + "/" + bank, 0);
    fs::resize_file(other() + "/" + bank, 0);
  }
  Generation generation = Generate(session, kQuestions[0]);
  waste_token token = Sized<waste_token>();
  waste_error error = NewError();
  std::array<char, 256> buffer;
  BOOST_TEST(waste_next(generation.get(), buffer.data(), std::ssize(buffer), &token, &error) ==
             WASTE_ERR_CORRUPT);
  BOOST_TEST(std::string(error.message).find("mini.waste/experts-L") != std::string::npos,
             error.message);
  for (const std::string& bank : Banks())
    std::ofstream(path() + "/" + bank, std::ios::binary)
        << std::ifstream(folder.File("kept/" + bank), std::ios::binary).rdbuf();
  generation.reset();
  BOOST_TEST(waste_session_reset(session.get(), nullptr) == 0);
  BOOST_TEST(Answers(session) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_drive_that_is_not_there_is_one_note) {
  fs::remove_all(other());
  const Model model = OpenAtFloor();
  const std::vector<std::string> notes = NotesOn(model.get());
  BOOST_REQUIRE(notes.size() == 1);
  BOOST_TEST(notes[0].find("../other") != std::string::npos, notes[0]);
  BOOST_TEST(Answers(model) == Answers(Open(MiniModel())), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
