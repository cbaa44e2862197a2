// SPDX-License-Identifier: Apache-2.0
//
// What Windows does in a way of its own: names in UTF-16, a limit of 260 characters, backslashes,
// and files that others have open.

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "os/file.h"
#include "os/windows_path.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

void WriteThrough(const std::string& path, std::string_view text) {
  auto file = AtomicFile::Create(path);
  BOOST_REQUIRE(file.ok());
  BOOST_REQUIRE(file->Append(text).ok());
  const Status committed = file->Commit();
  BOOST_REQUIRE_MESSAGE(committed.ok(), committed.message());
}

std::string ReadBack(const std::string& path) {
  const auto bytes = ReadWholeFile(path, 1000);
  BOOST_REQUIRE_MESSAGE(bytes.ok(), bytes.status().message());
  return {bytes->begin(), bytes->end()};
}

BOOST_AUTO_TEST_SUITE(file_windows)

BOOST_AUTO_TEST_CASE(text_goes_to_utf_16_and_back) {
  for (const std::string text : {"", "plain", "Zürich", "東京", "🦊"})
    BOOST_TEST(Utf8Of(WideOf(text)) == text);
  BOOST_TEST((WideOf("🦊") == L"\xD83E\xDD8A"));
  BOOST_TEST((WideOf("\xFF") == L"\xFFFD"));
}

BOOST_AUTO_TEST_CASE(names_in_all_scripts_are_written_listed_and_read) {
  const TemporaryFolder folder;
  const std::string inside = folder.PathOf("Ordner ü 東京");
  BOOST_REQUIRE(CreateFolder(inside).ok());
  BOOST_TEST(IsFolder(inside));
  const std::string name = "Füchse 🦊.bin";
  WriteThrough(JoinPath(inside, name), "text");
  BOOST_TEST(*ListFolder(inside) == std::vector<std::string>{name},
             boost::test_tools::per_element());
  BOOST_TEST(ReadBack(JoinPath(inside, name)) == "text");
  BOOST_TEST(RenamePath(inside, folder.PathOf("плоскость")).ok());
  BOOST_TEST(ReadBack(folder.PathOf("плоскость/" + name)) == "text");
  RemoveFolder(folder.PathOf("плоскость"));
  BOOST_TEST(!FileExists(folder.PathOf("плоскость")));
}

BOOST_AUTO_TEST_CASE(paths_may_be_longer_than_260_characters) {
  const TemporaryFolder folder;
  std::string path = folder.path();
  for (int depth = 0; depth < 5; ++depth) {
    path = JoinPath(path, std::string(90, static_cast<char>('a' + depth)));
    const Status status = CreateFolder(path);
    BOOST_REQUIRE_MESSAGE(status.ok(), status.message());
  }
  path = JoinPath(path, "f");
  WriteThrough(path, "deep");
  BOOST_TEST(FileExists(path));
  BOOST_TEST(ReadBack(path) == "deep");
  RemoveFolder(folder.PathOf(std::string(90, 'a')));
  BOOST_TEST(ListFolder(folder.path())->empty());
}

BOOST_AUTO_TEST_CASE(paths_are_joined_behind_a_backslash_too) {
  BOOST_TEST(JoinPath("C:\\a\\", "b") == "C:\\a\\b");
  BOOST_TEST(JoinPath("C:\\a", "b") == "C:\\a/b");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_open_can_be_renamed_and_removed) {
  const TemporaryFolder folder;
  const auto file = OpenFile(folder.Write("f", "text"), IoMode::kAuto);
  BOOST_REQUIRE(file.ok());
  BOOST_TEST(RenamePath(folder.PathOf("f"), folder.PathOf("g")).ok());
  std::vector<uint8_t> out(4);
  BOOST_TEST((*file)->ReadAt(0, out).ok());
  BOOST_TEST(std::string(out.begin(), out.end()) == "text");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
