// SPDX-License-Identifier: Apache-2.0
//
// Reservations between real processes, in folders of the tests' own.

#include "os/reservation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "os/process.h"
#include "support/child_process.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLarge = int64_t{1} << 40;  // beside it, what a test itself touches is nothing
constexpr int64_t kNoise = 16 * kMiB;         // of it, at most

using Line = ChildProcess::Line;

struct Place {
  TemporaryFolder folder;
  std::vector<std::string> paths = {folder.PathOf("reservations")};

  Reservation Make(int64_t bytes) const {
    return Reservation::Make([&](int64_t) { return bytes; }, paths);
  }
  int64_t Reserved() const { return Reservation::ReservedBytes(paths); }
  bool Holds(int64_t bytes) const {
    const int64_t reserved = Reserved();
    return reserved <= bytes && reserved >= bytes - kNoise;
  }
  // The same where much was touched: ThreadSanitizer touches as much again to watch it.
  bool HoldsAfterTouch(int64_t bytes) const {
#if defined(__SANITIZE_THREAD__)
    return Reserved() <= bytes;
#else
    return Holds(bytes);
#endif
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(paths[0]))
      names.push_back(entry.path().filename().string());
    return names;
  }
  // A file as a process would leave or hold it; with a lock, it is held as long as this test runs.
  std::string Plant(int64_t bytes, const ProcessId& process, bool locked) const {
    const std::string name = std::to_string(bytes) + "-0-" + std::to_string(process.space) + "-" +
                             std::to_string(process.number) + "-" + std::to_string(process.start) +
                             "-0";
    const int file = open((paths[0] + "/" + name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    BOOST_REQUIRE(file >= 0);
    if (locked) BOOST_REQUIRE(flock(file, LOCK_EX | LOCK_NB) == 0);
    if (!locked) close(file);
    return name;
  }
};

void Touch(AlignedBuffer& buffer) {
  const auto bytes = buffer.bytes();
  std::fill(bytes.begin(), bytes.end(), uint8_t{1});
}

AlignedBuffer Allocate(int64_t bytes) {
  auto buffer = AlignedBuffer::Allocate(bytes);
  BOOST_REQUIRE(buffer.ok());
  return *std::move(buffer);
}

// Only root can give a folder away.
boost::test_tools::assertion_result IsRoot(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(geteuid() == 0);
  if (!result) result.message() << "only root can make a folder of another user";
  return result;
}

BOOST_AUTO_TEST_SUITE(reservation)

BOOST_AUTO_TEST_CASE(it_counts_until_it_is_released) {
  const Place place;
  BOOST_TEST(place.Reserved() == 0);
  BOOST_TEST(!std::filesystem::exists(place.paths[0]));  // asking leaves nothing behind
  {
    Reservation first = place.Make(kLarge);
    BOOST_TEST(first.held());
    BOOST_TEST(place.Holds(kLarge));
    const Reservation second = place.Make(2 * kLarge);
    BOOST_TEST(place.Holds(3 * kLarge));
    first = Reservation();
    BOOST_TEST(place.Holds(2 * kLarge));
  }
  BOOST_TEST(place.Reserved() == 0);
  BOOST_TEST(place.Files().empty());
}

BOOST_AUTO_TEST_CASE(a_plan_that_takes_nothing_reserves_nothing) {
  const Place place;
  BOOST_TEST(!place.Make(0).held());
  BOOST_TEST(place.Files().empty());
}

BOOST_AUTO_TEST_CASE(it_can_be_resized_and_moved) {
  const Place place;
  Reservation made = place.Make(kLarge);
  made.Resize(3 * kLarge);
  BOOST_TEST(place.Holds(3 * kLarge));
  Reservation moved = std::move(made);
  made.Resize(kLarge);  // nothing is left of it to resize
  BOOST_TEST(place.Holds(3 * kLarge));
  moved.Resize(2 * kLarge);
  BOOST_TEST(place.Holds(2 * kLarge));
  Reservation().Resize(kLarge);
  BOOST_TEST(place.Files().size() == 1u);
}

BOOST_AUTO_TEST_CASE(another_process_sees_it_and_not_what_was_touched) {
  const Place place;
  ChildProcess child([&](const Line& line) {
    const Reservation made = place.Make(256 * kMiB);
    auto memory = AlignedBuffer::Allocate(128 * kMiB);
    line.Say('r');
    line.Hear();
    if (memory.ok()) Touch(*memory);
    line.Say('t');
    line.Hear();
  });
  BOOST_REQUIRE(child.Hear() == 'r');
  BOOST_TEST(place.Holds(256 * kMiB));
  child.Say('.');
  BOOST_REQUIRE(child.Hear() == 't');
  BOOST_TEST(place.HoldsAfterTouch(128 * kMiB));
}

BOOST_AUTO_TEST_CASE(what_a_process_had_before_its_first_model_is_not_the_models) {
  const Place place;
  AlignedBuffer of_the_host = Allocate(64 * kMiB);
  Touch(of_the_host);
  Reservation first = place.Make(128 * kMiB);
  BOOST_TEST(place.Holds(128 * kMiB));
  {
    AlignedBuffer of_the_first = Allocate(128 * kMiB);
    Touch(of_the_first);
    BOOST_TEST(place.HoldsAfterTouch(0));
    const Reservation second = place.Make(64 * kMiB);
    BOOST_TEST(place.HoldsAfterTouch(64 * kMiB));
  }
  const Reservation third = place.Make(128 * kMiB);
  first = Reservation();
  AlignedBuffer of_the_third = Allocate(128 * kMiB);
  Touch(of_the_third);
  BOOST_TEST(place.HoldsAfterTouch(0));
}

BOOST_AUTO_TEST_CASE(that_of_a_killed_process_is_gone_with_its_file) {
  const Place place;
  ChildProcess child([&](const Line& line) {
    const Reservation made = place.Make(kLarge);
    line.Say('r');
    line.Hear();
  });
  BOOST_REQUIRE(child.Hear() == 'r');
  BOOST_TEST(place.Holds(kLarge));
  child.Kill();
  BOOST_TEST(place.Reserved() == 0);
  BOOST_TEST(place.Files().empty());
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_release_what_is_its_parents) {
  const Place place;
  Reservation made = place.Make(kLarge);
  ChildProcess child([&](const Line& line) {
    made.Resize(1);
    made = Reservation();
    line.Say('d');
    line.Hear();
  });
  BOOST_REQUIRE(child.Hear() == 'd');
  BOOST_TEST(place.Holds(kLarge));
  made = Reservation();
  BOOST_TEST(place.Reserved() == 0);
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_keep_what_its_dead_parent_held) {
  const Place place;
  ChildProcess parent([&](const Line& line) {
    const Reservation made = place.Make(kLarge);
    if (fork() == 0) {
      line.Say('r');
      line.Hear();  // until the test ends, with the lock's descriptor
      _exit(0);
    }
    pause();
  });
  BOOST_REQUIRE(parent.Hear() == 'r');
  BOOST_TEST(place.Holds(kLarge));
  parent.Kill();
  BOOST_TEST(place.Reserved() == 0);
}

BOOST_AUTO_TEST_CASE(processes_that_open_at_once_do_not_plan_with_the_same_bytes) {
  constexpr int64_t kAll = 4 * kLarge;
  const Place place;
  std::list<ChildProcess> children;
  for (int i = 0; i < 8; ++i) {
    children.emplace_back([&](const Line& line) {
      line.Hear();
      const auto made = Reservation::Make(
          [&](int64_t reserved) { return reserved + kLarge <= kAll ? kLarge : 0; }, place.paths);
      line.Say(made.held() ? 'y' : 'n');
      line.Hear();
    });
  }
  for (const ChildProcess& child : children) child.Say('.');
  const auto granted = std::count_if(children.begin(), children.end(),
                                     [](const ChildProcess& child) { return child.Hear() == 'y'; });
  BOOST_TEST(granted == 4);
}

BOOST_AUTO_TEST_CASE(a_number_that_another_process_has_now_does_not_count) {
  const Place place;
  const Reservation made = place.Make(kLarge);
  ProcessId earlier = ThisProcess();
  --earlier.start;
  place.Plant(kLarge, earlier, true);
  BOOST_TEST(place.Holds(kLarge));
  BOOST_TEST(place.Files().size() == 1u);
}

BOOST_AUTO_TEST_CASE(of_a_process_in_another_number_space_the_lock_tells) {
  const Place place;
  const Reservation made = place.Make(1);
  ProcessId elsewhere = ThisProcess();
  ++elsewhere.space;
  place.Plant(kLarge, elsewhere, false);
  BOOST_TEST(place.Reserved() <= 1);
  place.Plant(kLarge, elsewhere, true);
  BOOST_TEST(place.Holds(kLarge + 1));
}

BOOST_AUTO_TEST_CASE(numbers_beyond_every_memory_do_not_wrap) {
  const Place place;
  const Reservation made = place.Make(INT64_MAX);
  const Reservation more = place.Make(INT64_MAX);
  BOOST_TEST(place.Reserved() > INT64_MAX / 2);
}

BOOST_AUTO_TEST_CASE(files_of_other_names_are_left_alone) {
  const Place place;
  const Reservation made = place.Make(kLarge);
  const std::vector<std::string> names = {
      "notes",       "1-2-3", "1-2-3-4-5-6-7", "-1-2-3-4-5-6", "1-2-3-4-5-99999999999999999999",
      "01-2-3-4-5-6"};
  for (const std::string& name : names) place.folder.Write("reservations/" + name, "");
  BOOST_TEST(place.Holds(kLarge));
  BOOST_TEST(place.Files().size() == names.size() + 1);
}

BOOST_AUTO_TEST_CASE(folders_that_others_could_reach_are_not_used) {
  const TemporaryFolder folder;
  const std::string open = folder.PathOf("open"), link = folder.PathOf("link");
  BOOST_REQUIRE(mkdir(open.c_str(), 0755) == 0);
  BOOST_REQUIRE(mkdir(folder.PathOf("private").c_str(), 0700) == 0);
  BOOST_REQUIRE(symlink(folder.PathOf("private").c_str(), link.c_str()) == 0);
  for (const std::string& path :
       {open, link, folder.Write("file", ""), folder.PathOf("none/below")}) {
    int64_t planned = -1;
    const auto plan = [&](int64_t reserved) { return planned = reserved + kLarge; };
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(!Reservation::Make(plan, {path}).held());
      BOOST_TEST(planned == kLarge);  // it was asked all the same
      BOOST_TEST(Reservation::ReservedBytes({path}) == 0);
      BOOST_TEST(Reservation::Make(plan, {path, folder.PathOf("next")}).held());
    }
  }
}

BOOST_AUTO_TEST_CASE(somebody_elses_folder_is_not_used, *boost::unit_test::precondition(IsRoot)) {
  const Place place;
  BOOST_REQUIRE(mkdir(place.paths[0].c_str(), 0700) == 0);
  BOOST_REQUIRE(chown(place.paths[0].c_str(), 12345, 12345) == 0);
  BOOST_TEST(!place.Make(kLarge).held());
}

BOOST_AUTO_TEST_CASE(a_process_that_was_stopped_in_its_plan_stops_nobody) {
  const Place place;
  const Reservation made = place.Make(kLarge);
  const std::string dead = place.Plant(1, {.space = 1, .number = 1, .start = 1}, false);
  const int folder = open(place.paths[0].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  BOOST_REQUIRE(flock(folder, LOCK_EX | LOCK_NB) == 0);
  BOOST_TEST(place.Holds(kLarge));
  BOOST_TEST(place.Files().size() == 2u);  // one that is just being made would look the same
  close(folder);
  BOOST_TEST(place.Holds(kLarge));
  BOOST_TEST(place.Files().size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_users_own_folder_works) {
  const auto folders = Reservation::Folders();
  BOOST_TEST(folders.size() >= 2u);
  for (const std::string& path : folders)
    BOOST_TEST(path.find(std::to_string(geteuid())) != std::string::npos);
  const auto made = Reservation::Make([](int64_t) { return 1; });
  BOOST_TEST(made.held());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
