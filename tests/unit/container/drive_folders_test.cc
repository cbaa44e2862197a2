// SPDX-License-Identifier: Apache-2.0

#include "container/drive_folders.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "support/temporary_folder.h"

namespace waste {
namespace {

using Folders = std::vector<std::string>;

std::string ListOf(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i == 0 ? "\"f" : ", \"f") + std::to_string(i) + "\"";
  return "{\"folders\": [" + list + "]}";
}

BOOST_AUTO_TEST_SUITE(drive_folders)

BOOST_AUTO_TEST_CASE(folders_come_as_written_and_other_keys_are_ignored) {
  const auto folders =
      ParseDriveFolders(R"({"note": 1, "folders": ["/mnt/b/kimi.waste", "../other", "ü"]})", "d");
  BOOST_REQUIRE(folders.ok());
  BOOST_TEST(*folders == (Folders{"/mnt/b/kimi.waste", "../other", "ü"}),
             boost::test_tools::per_element());
  BOOST_TEST(ParseDriveFolders(R"({"folders": []})", "d")->empty());
  BOOST_TEST(ParseDriveFolders(ListOf(16), "d")->size() == 16);
}

BOOST_AUTO_TEST_CASE(what_is_no_list_of_folders_is_refused_by_name) {
  const struct {
    std::string text;
    Code code;
    const char* said;
  } kCases[] = {
      {"", Code::kFormat, "not JSON"},
      {"[]", Code::kFormat, "folders"},
      {"{}", Code::kFormat, "folders"},
      {R"({"folder": ["a"]})", Code::kFormat, "folders"},
      {R"({"folders": "a"})", Code::kFormat, "folders"},
      {R"({"folders": {"a": "b"}})", Code::kFormat, "folders"},
      {R"({"folders": [1]})", Code::kFormat, "\"1\" is no folder"},
      {R"({"folders": ["a", null]})", Code::kFormat, "null"},
      {R"({"folders": ["a"], "folders": ["b"]})", Code::kFormat, "twice"},
      {R"({"folders": [""]})", Code::kCorrupt, "can be no folder"},
      {R"({"folders": ["a\u0000b"]})", Code::kCorrupt, "can be no folder"},
      {R"({"folders": ["a\nb"]})", Code::kCorrupt, "can be no folder"},
      {R"({"folders": [")" + std::string(4097, 'a') + R"("]})", Code::kCorrupt, "can be no folder"},
      {ListOf(17), Code::kCorrupt, "17 folders, at most 16"},
      {ListOf(5000), Code::kCorrupt, "5000 folders"}};
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.text.substr(0, 80)) {
      const Status status = ParseDriveFolders(c.text, "drives.json").status();
      BOOST_CHECK(status.code() == c.code);
      BOOST_TEST(status.message().find("drives.json") != std::string::npos, status.message());
      BOOST_TEST(status.message().find(c.said) != std::string::npos, status.message());
    }
  }
}

BOOST_AUTO_TEST_CASE(without_the_file_the_container_is_the_only_folder) {
  const TemporaryFolder folder;
  BOOST_TEST(*ReadDriveFolders(folder.path()) == Folders{folder.path()},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(relative_folders_start_at_the_container_and_missing_ones_are_kept) {
  const TemporaryFolder folder;
  folder.Write("c/drives.json", R"({"folders": ["../b", "/nowhere/at/all"]})");
  const std::string container = folder.PathOf("c");
  BOOST_TEST(
      *ReadDriveFolders(container) == (Folders{container, container + "/../b", "/nowhere/at/all"}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_folder_counts_once_by_whatever_name) {
  const TemporaryFolder folder;
  folder.Write("b/x", "");
  folder.Write("c/drives.json",
               R"({"folders": [".", "../c", "../b", "../link", "../b/", "gone", "gone", "loop"]})");
  std::filesystem::create_directory_symlink(folder.PathOf("b"), folder.PathOf("link"));
  std::filesystem::create_directory_symlink("loop", folder.PathOf("c/loop"));
  const std::string container = folder.PathOf("c");
  BOOST_TEST(*ReadDriveFolders(container) == (Folders{container, container + "/../b",
                                                      container + "/gone", container + "/loop"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_no_readable_file_is_an_error) {
  const TemporaryFolder folder;
  folder.Write("a/drives.json/x", "");
  BOOST_CHECK(ReadDriveFolders(folder.PathOf("a")).status().code() == Code::kIo);
  folder.Write("b/drives.json", std::string((1 << 20) + 1, ' '));
  BOOST_CHECK(ReadDriveFolders(folder.PathOf("b")).status().code() == Code::kFormat);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
