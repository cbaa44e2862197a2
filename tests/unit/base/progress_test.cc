// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <string>
#include <thread>
#include <vector>

#include "base/progress.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(progress)

BOOST_AUTO_TEST_CASE(work_is_counted_up_to_its_total) {
  Progress progress;
  BOOST_TEST(progress.done() == 0);
  BOOST_TEST(progress.total() == 0);
  progress.SetTotal(int64_t{1} << 40);
  progress.Add(3);
  progress.Add(4);
  BOOST_TEST(progress.done() == 7);
  BOOST_TEST(progress.total() == int64_t{1} << 40);
}

BOOST_AUTO_TEST_CASE(the_worker_learns_that_it_was_cancelled) {
  Progress progress;
  BOOST_TEST(progress.CheckCancelled().ok());
  BOOST_TEST(!progress.cancelled());
  std::thread([&] { progress.Cancel(); }).join();
  BOOST_TEST(progress.cancelled());
  BOOST_CHECK(progress.CheckCancelled().code() == Code::kCancelled);
}

BOOST_AUTO_TEST_CASE(lines_come_out_once_in_their_order) {
  Progress progress;
  BOOST_TEST(!progress.NextLine().has_value());
  progress.Log("first");
  progress.Log("second");
  BOOST_TEST(*progress.NextLine() == "first");
  progress.Log("third");
  BOOST_TEST(*progress.NextLine() == "second");
  BOOST_TEST(*progress.NextLine() == "third");
  BOOST_TEST(!progress.NextLine().has_value());
}

BOOST_AUTO_TEST_CASE(threads_may_write_and_read_at_once) {
  Progress progress;
  std::vector<std::thread> workers;
  for (int t = 0; t < 3; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        progress.Add(1);
        progress.Log("line");
      }
    });
  }
  int64_t lines = 0;
  while (lines < 3000)
    if (progress.NextLine().has_value()) ++lines;
  for (std::thread& worker : workers) worker.join();
  BOOST_TEST(progress.done() == 3000);
  BOOST_TEST(!progress.NextLine().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
