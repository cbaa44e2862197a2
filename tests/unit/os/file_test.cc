// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#if defined(_WIN32)
#include <windows.h>
#else
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <linux/magic.h>
#include <sys/vfs.h>
#endif

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "os/file.h"
#include "os/system_error.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

constexpr int64_t kBlock = 4096;

#if defined(_WIN32)
constexpr int kNoSuchFile = ERROR_FILE_NOT_FOUND, kExists = ERROR_ALREADY_EXISTS;
#else
constexpr int kNoSuchFile = ENOENT, kExists = EEXIST;
#endif

// Bytes that differ from place to place, so that a read from a wrong offset shows.
std::string Pattern(int64_t size) {
  std::string text(static_cast<size_t>(size), '\0');
  for (int64_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

std::string TextOf(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Does the file system of the temporary folder do direct reads?
boost::test_tools::assertion_result DirectReads(boost::unit_test::test_unit_id) {
  const TemporaryFolder folder;
  const auto file = OpenFile(folder.Write("f", Pattern(kBlock)), IoMode::kDirect);
  boost::test_tools::assertion_result result(file.ok() && (*file)->direct());
  if (!result) result.message() << "the temporary folder's file system refuses direct reads";
  return result;
}

#if defined(__linux__)
// Is the temporary folder on a medium, so that its page cache can be dropped?
boost::test_tools::assertion_result HasMedium(boost::unit_test::test_unit_id) {
  const TemporaryFolder folder;
  struct statfs info = {};
  boost::test_tools::assertion_result result(statfs(folder.path().c_str(), &info) == 0 &&
                                             info.f_type != TMPFS_MAGIC);
  if (!result) result.message() << "the temporary folder is in memory alone";
  return result;
}

// Pages of a file that the page cache holds.
int64_t CachedPages(const std::string& path, int64_t size) {
  const int number = open(path.c_str(), O_RDWR | O_CLOEXEC);
  BOOST_REQUIRE(number >= 0);
  fsync(number);
  void* const bytes =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  BOOST_REQUIRE(bytes != MAP_FAILED);
  std::vector<unsigned char> pages(
      static_cast<size_t>((size + sysconf(_SC_PAGESIZE) - 1) / sysconf(_SC_PAGESIZE)));
  BOOST_TEST(mincore(bytes, static_cast<size_t>(size), pages.data()) == 0);
  munmap(bytes, static_cast<size_t>(size));
  close(number);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}
#endif

BOOST_AUTO_TEST_SUITE(file)

BOOST_AUTO_TEST_CASE(any_range_is_read_in_buffered_mode) {
  const TemporaryFolder folder;
  const std::string text = Pattern(10'000);
  const auto file = OpenFile(folder.Write("f", text), IoMode::kBuffered);
  BOOST_REQUIRE(file.ok());
  BOOST_TEST((*file)->size() == 10'000);
  BOOST_TEST((*file)->path() == folder.PathOf("f"));
  BOOST_TEST(!(*file)->direct());
  const struct {
    int64_t offset, size;
  } kRanges[] = {{0, 10'000}, {0, 0}, {10'000, 0}, {1, 1}, {4095, 2}, {9'999, 1}, {5000, 5000}};
  for (const auto& range : kRanges) {
    std::vector<uint8_t> out(static_cast<size_t>(range.size));
    BOOST_TEST((*file)->ReadAt(range.offset, out).ok());
    BOOST_TEST(TextOf(out) == text.substr(range.offset, range.size));
  }
}

BOOST_AUTO_TEST_CASE(a_range_outside_the_file_is_refused_with_its_numbers) {
  const TemporaryFolder folder;
  const auto file = OpenFile(folder.Write("f", Pattern(100)), IoMode::kBuffered);
  BOOST_REQUIRE(file.ok());
  const struct {
    int64_t offset;
    size_t size;
  } kRanges[] = {{99, 2}, {100, 1}, {101, 0}, {-1, 1}, {INT64_MAX, 1}, {INT64_MIN, 1}, {0, 101}};
  for (const auto& range : kRanges) {
    std::vector<uint8_t> out(range.size);
    const Status status = (*file)->ReadAt(range.offset, out);
    BOOST_TEST_CONTEXT("offset " << range.offset) {
      BOOST_CHECK(status.code() == Code::kCorrupt);
      BOOST_TEST(status.message().find(folder.PathOf("f")) != std::string::npos);
      BOOST_TEST(status.message().find(std::to_string(range.offset)) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_cut_after_it_was_opened_is_corrupt) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("f", Pattern(3 * kBlock));
  for (const IoMode mode : {IoMode::kBuffered, IoMode::kAuto}) {
    folder.Write("f", Pattern(3 * kBlock));
    const auto file = OpenFile(path, mode);
    BOOST_REQUIRE(file.ok());
    for (const int64_t left : {2 * kBlock, kBlock + 1}) {
      std::filesystem::resize_file(path, static_cast<uintmax_t>(left));
      auto out = AlignedBuffer::Allocate(3 * kBlock);
      const Status status = (*file)->ReadAt(0, out->bytes());
      BOOST_CHECK(status.code() == Code::kCorrupt);
      BOOST_TEST((*file)->ReadAt(0, out->bytes().first(kBlock)).ok());
    }
  }
}

#if defined(__linux__)
BOOST_AUTO_TEST_CASE(the_page_cache_drops_what_is_forgotten,
                     *boost::unit_test::precondition(HasMedium)) {
  constexpr int64_t kSize = 1024 * kBlock;
  const TemporaryFolder folder;
  const std::string path = folder.Write("f", Pattern(kSize));
  const auto file = OpenFile(path, IoMode::kBuffered);
  BOOST_REQUIRE(file.ok());
  std::vector<uint8_t> out(kSize);
  BOOST_REQUIRE((*file)->ReadAt(0, out).ok());
  const int64_t before = CachedPages(path, kSize);
  (*file)->Forget(0, kSize / 2);
  BOOST_TEST(CachedPages(path, kSize) <= before * 3 / 4);
  BOOST_REQUIRE((*file)->ReadAt(0, out).ok());  // it is still there to be read
  BOOST_TEST((TextOf(out) == Pattern(kSize)));
}
#endif

BOOST_AUTO_TEST_CASE(aligned_ranges_are_read_directly,
                     *boost::unit_test::precondition(DirectReads)) {
  const TemporaryFolder folder;
  const std::string text = Pattern(64 * kBlock);
  const auto file = OpenFile(folder.Write("f", text), IoMode::kDirect);
  BOOST_REQUIRE(file.ok());
  BOOST_REQUIRE((*file)->direct());
  auto out = AlignedBuffer::Allocate(64 * kBlock);
  for (int64_t first = 0; first < 64; first += 3) {
    for (int64_t count = 0; first + count <= 64; count += 5) {
      const auto range = out->bytes().last((64 - first) * kBlock).first(count * kBlock);
      BOOST_REQUIRE((*file)->ReadAt(first * kBlock, range).ok());
      BOOST_REQUIRE(TextOf(range) == text.substr(first * kBlock, count * kBlock));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_of_no_whole_blocks_is_read_to_its_end_in_every_mode) {
  const TemporaryFolder folder;
  for (const int64_t size : {int64_t{0}, int64_t{1}, kBlock - 1, kBlock + 1, 3 * kBlock + 512}) {
    const std::string text = Pattern(size);
    const std::string path = folder.Write("f", text);
    for (const IoMode mode : {IoMode::kAuto, IoMode::kDirect, IoMode::kBuffered}) {
      const auto file = OpenFile(path, mode);
      BOOST_REQUIRE(file.ok());
      BOOST_TEST(!(*file)->direct());
      std::vector<uint8_t> out(static_cast<size_t>(size));
      BOOST_TEST((*file)->ReadAt(0, out).ok());
      BOOST_TEST(TextOf(out) == text);
    }
  }
}

BOOST_AUTO_TEST_CASE(many_threads_read_one_file) {
  const TemporaryFolder folder;
  const std::string text = Pattern(64 * kBlock);
  const auto file = OpenFile(folder.Write("f", text), IoMode::kAuto);
  BOOST_REQUIRE(file.ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto out = AlignedBuffer::Allocate(kBlock);
      for (int64_t block = t; block < 64; ++block)
        if (!(*file)->ReadAt(block * kBlock, out->bytes()).ok() ||
            TextOf(out->bytes()) != text.substr(block * kBlock, kBlock))
          ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(what_is_no_readable_file_is_refused_by_name) {
  const TemporaryFolder folder;
  for (const std::string& path :
       {folder.PathOf("absent"), folder.path(), std::string(), std::string(5000, 'a')}) {
    for (const IoMode mode : {IoMode::kAuto, IoMode::kDirect, IoMode::kBuffered}) {
      const auto file = OpenFile(path, mode);
      BOOST_REQUIRE(!file.ok());
      BOOST_CHECK(file.status().code() == Code::kIo);
      BOOST_TEST(file.status().message().find(path) != std::string::npos);
    }
  }
  BOOST_TEST(OpenFile(folder.PathOf("absent"), IoMode::kAuto).status().message() ==
             "cannot open " + folder.PathOf("absent") + ": " + SystemErrorText(kNoSuchFile));
}

BOOST_AUTO_TEST_CASE(a_whole_file_is_read_up_to_its_limit) {
  const TemporaryFolder folder;
  const std::string text = Pattern(5000);
  const std::string path = folder.Write("f", text);
  BOOST_TEST(TextOf(*ReadWholeFile(path, 5000)) == text);
  BOOST_TEST(ReadWholeFile(folder.Write("empty", ""), 0)->empty());
  const auto refused = ReadWholeFile(path, 4999);
  BOOST_REQUIRE(!refused.ok());
  BOOST_CHECK(refused.status().code() == Code::kFormat);
  BOOST_TEST(refused.status().message() == path + ": has 5000 bytes, and at most 4999 make sense");
  BOOST_CHECK(ReadWholeFile(folder.PathOf("absent"), 1).status().code() == Code::kIo);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(atomic_file)

BOOST_AUTO_TEST_CASE(appears_under_its_name_when_committed) {
  const TemporaryFolder folder;
  const std::string path = folder.PathOf("f");
  {
    auto file = AtomicFile::Create(path);
    BOOST_REQUIRE(file.ok());
    BOOST_TEST(file->Append("hello ").ok());
    BOOST_TEST(file->Append(BytesOf("there")).ok());
    BOOST_TEST(file->size() == 11);
    BOOST_TEST(file->WriteAt(6, BytesOf("world")).ok());
    BOOST_TEST(file->size() == 11);
    BOOST_TEST(!FileExists(path));
    BOOST_TEST(FileExists(path + ".tmp"));
    BOOST_TEST(file->Commit().ok());
    BOOST_TEST(Slurp(path) == "hello world");
  }
  BOOST_TEST(*ListFolder(folder.path()) == std::vector<std::string>{"f"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(leaves_nothing_without_commit_and_keeps_the_old_file) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("f", "old");
  {
    auto file = AtomicFile::Create(path);
    BOOST_REQUIRE(file.ok());
    BOOST_TEST(file->Append("new").ok());
  }
  BOOST_TEST(Slurp(path) == "old");
  BOOST_TEST(!FileExists(path + ".tmp"));
}

BOOST_AUTO_TEST_CASE(replaces_the_old_file_at_once) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("f", "old and longer");
  auto file = AtomicFile::Create(path);
  BOOST_REQUIRE(file.ok());
  BOOST_TEST(file->Append("new").ok());
  AtomicFile moved = *std::move(file);
  BOOST_TEST(moved.Commit().ok());
  BOOST_TEST(Slurp(path) == "new");
}

BOOST_AUTO_TEST_CASE(failures_name_the_file_and_leave_nothing) {
  const TemporaryFolder folder;
  const auto nowhere = AtomicFile::Create(folder.PathOf("absent/f"));
  BOOST_REQUIRE(!nowhere.ok());
  BOOST_CHECK(nowhere.status().code() == Code::kIo);
  BOOST_TEST(nowhere.status().message().find("absent/f") != std::string::npos);
  const std::string path = folder.PathOf("f");
  auto file = AtomicFile::Create(path);
  BOOST_REQUIRE(file.ok());
  BOOST_REQUIRE(CreateFolder(path).ok());
  folder.Write("f/full", "");
  const Status status = file->Commit();  // a file cannot replace a folder
  BOOST_CHECK(status.code() == Code::kIo);
  BOOST_TEST(status.message().find(path) != std::string::npos);
  BOOST_TEST(!FileExists(path + ".tmp"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(folders)

BOOST_AUTO_TEST_CASE(names_are_listed_sorted) {
  const TemporaryFolder folder;
  for (const char* name : {"b", "a", "c/inner", ".hidden"}) folder.Write(name, "");
  const std::vector<std::string> expected = {".hidden", "a", "b", "c"};
  BOOST_TEST(*ListFolder(folder.path()) == expected, boost::test_tools::per_element());
  const auto absent = ListFolder(folder.PathOf("absent"));
  BOOST_REQUIRE(!absent.ok());
  BOOST_TEST(
      absent.status().message().starts_with("cannot list " + folder.PathOf("absent") + ": "));
  BOOST_CHECK(ListFolder(folder.PathOf("a")).status().code() == Code::kIo);
}

BOOST_AUTO_TEST_CASE(a_folder_is_created_once) {
  const TemporaryFolder folder;
  const std::string path = folder.PathOf("d");
  BOOST_TEST(!IsFolder(path));
  BOOST_TEST(CreateFolder(path).ok());
  BOOST_TEST(IsFolder(path));
  BOOST_TEST(FileExists(path));
  const Status again = CreateFolder(path);
  BOOST_CHECK(again.code() == Code::kIo);
  BOOST_TEST(again.message() == "cannot create folder " + path + ": " + SystemErrorText(kExists));
}

BOOST_AUTO_TEST_CASE(a_folder_is_renamed_with_what_is_in_it) {
  const TemporaryFolder folder;
  folder.Write("from/f", "text");
  BOOST_TEST(RenamePath(folder.PathOf("from"), folder.PathOf("to/")).ok());
  BOOST_TEST(Slurp(folder.PathOf("to/f")) == "text");
  BOOST_TEST(!FileExists(folder.PathOf("from")));
  const Status absent = RenamePath(folder.PathOf("from"), folder.PathOf("x"));
  BOOST_CHECK(absent.code() == Code::kIo);
  BOOST_TEST(absent.message().find(folder.PathOf("from")) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(paths_are_joined_with_one_slash) {
  BOOST_TEST(JoinPath("a", "b") == "a/b");
  BOOST_TEST(JoinPath("a/", "b") == "a/b");
  BOOST_TEST(JoinPath("/", "b") == "/b");
  BOOST_TEST(JoinPath("", "b") == "b");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
