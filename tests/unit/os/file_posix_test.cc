// SPDX-License-Identifier: Apache-2.0
//
// What POSIX has and Windows has not: links, pipes, limits of a file's size, folders of memory.

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "os/file.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

constexpr int64_t kBlock = 4096;

std::string TextOf(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

BOOST_AUTO_TEST_SUITE(file_posix)

BOOST_AUTO_TEST_CASE(a_pipe_is_no_file_and_does_not_hang) {
  const TemporaryFolder folder;
  const std::string pipe = folder.PathOf("pipe");
  BOOST_REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const IoMode mode : {IoMode::kAuto, IoMode::kDirect, IoMode::kBuffered})
    BOOST_TEST(OpenFile(pipe, mode).status().message() ==
               "cannot open " + pipe + ": it is no file");
}

// Not every system has such a file system; where there is none, the modes must still agree.
BOOST_AUTO_TEST_CASE(where_direct_reads_are_refused_buffered_ones_serve) {
  const TemporaryFolder folder;
  const std::string text(4 * kBlock, 'x');
  std::vector<std::string> paths = {folder.Write("f", text)};
  const std::string in_memory = "/dev/shm/waste-file-test-" + std::to_string(getpid());
  if (IsFolder("/dev/shm") && std::ofstream(in_memory, std::ios::binary) << text)
    paths.push_back(in_memory);
  for (const std::string& path : paths) {
    const auto file = OpenFile(path, IoMode::kAuto);
    BOOST_REQUIRE(file.ok());
    auto out = AlignedBuffer::Allocate(4 * kBlock);
    for (int repeat = 0; repeat < 2; ++repeat) {
      BOOST_TEST((*file)->ReadAt(0, out->bytes()).ok());
      BOOST_TEST(TextOf(out->bytes()) == text);
    }
  }
  unlink(in_memory.c_str());
}

BOOST_AUTO_TEST_CASE(does_not_write_through_a_link_or_what_a_killed_process_left) {
  const TemporaryFolder folder;
  const std::string victim = folder.Write("victim", "precious");
  const std::string path = folder.PathOf("f");
  BOOST_REQUIRE(symlink(victim.c_str(), (path + ".tmp").c_str()) == 0);
  auto file = AtomicFile::Create(path);
  BOOST_REQUIRE(file.ok());
  BOOST_TEST(file->Append("new").ok());
  BOOST_TEST(file->Commit().ok());
  BOOST_TEST(Slurp(victim) == "precious");
  folder.Write("f.tmp", "left over, and longer than what follows");
  auto again = AtomicFile::Create(path);
  BOOST_REQUIRE(again.ok());
  BOOST_TEST(again->Append("2").ok());
  BOOST_TEST(again->Commit().ok());
  BOOST_TEST(Slurp(path) == "2");
}

// A size limit stands for a full medium: the first part of a write succeeds, then it is refused.
BOOST_AUTO_TEST_CASE(a_write_that_the_system_refuses_is_an_error_with_its_place) {
  const TemporaryFolder folder;
  const std::string path = folder.PathOf("f");
  rlimit before;
  BOOST_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  Status status;
  {
    auto file = AtomicFile::Create(path);
    status = file.status();
    if (file.ok()) status = file->Append(std::string(9'000, 'x'));
    if (status.ok()) status = file->Append(std::string(2'000, 'x'));
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  BOOST_CHECK(status.code() == Code::kIo);
  BOOST_TEST(status.message() ==
             "cannot write 2000 bytes at 9000 of " + path + ".tmp: File too large");
  BOOST_TEST(ListFolder(folder.path())->empty());
}

BOOST_AUTO_TEST_CASE(a_dangling_link_exists_and_is_no_folder) {
  const TemporaryFolder folder;
  const std::string path = folder.PathOf("link");
  BOOST_REQUIRE(symlink("nowhere", path.c_str()) == 0);
  BOOST_TEST(FileExists(path));
  BOOST_TEST(!IsFolder(path));
  BOOST_TEST(!FileExists(folder.PathOf("absent")));
}

BOOST_AUTO_TEST_CASE(removal_does_not_follow_links) {
  const TemporaryFolder folder;
  folder.Write("kept/f", "text");
  folder.Write("gone/deep/f", "");
  BOOST_REQUIRE(symlink(folder.PathOf("kept").c_str(), folder.PathOf("gone/link").c_str()) == 0);
  RemoveFolder(folder.PathOf("gone"));
  RemoveFolder(folder.PathOf("absent"));
  BOOST_TEST(!FileExists(folder.PathOf("gone")));
  BOOST_TEST(Slurp(folder.PathOf("kept/f")) == "text");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
