// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "os/file.h"
#include "stream/usage_log.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(usage_log)

const UsageLog kUsage{.tokens = 1'000'000'007,
                      .entries = {{.layer = 1, .expert = 895, .hits = 1204, .last_seen = 77},
                                  {.layer = 92, .expert = 0, .hits = 1, .last_seen = 0}}};

// The published layout, by hand.
const std::vector<uint8_t> kBytes = {
    'W',  'U', 'S', 'G', 1,    0, 0, 0, 7,  0xCA, 0x9A, 0x3B, 0, 0, 0, 0,  // header
    1,    0,   127, 3,   0xB4, 4, 0, 0, 77, 0,    0,    0,    0, 0, 0, 0,  // 895 = 0x37F
    0x5C, 0,   0,   0,   1,    0, 0, 0, 0,  0,    0,    0,    0, 0, 0, 0,
};

BOOST_AUTO_TEST_CASE(bytes_are_those_of_the_published_layout) {
  BOOST_TEST(PrintUsageLog(kUsage) == kBytes, boost::test_tools::per_element());
  const auto read = ParseUsageLog(kBytes, "usage.waste");
  BOOST_REQUIRE(read.ok());
  BOOST_TEST((*read == kUsage));
}

BOOST_AUTO_TEST_CASE(what_is_no_usage_log_is_refused_by_name) {
  const auto code = [](std::vector<uint8_t> bytes) {
    const auto read = ParseUsageLog(bytes, "usage.waste");
    BOOST_REQUIRE(!read.ok());
    BOOST_TEST(read.status().message().find("usage.waste") == 0);
    return read.status().code();
  };
  std::vector<uint8_t> bytes = kBytes;
  bytes.pop_back();
  BOOST_CHECK(code(bytes) == Code::kCorrupt);
  bytes.resize(15);
  BOOST_CHECK(code(bytes) == Code::kCorrupt);
  BOOST_CHECK(code({}) == Code::kCorrupt);
  bytes = kBytes;
  bytes[0] ^= 1;
  BOOST_CHECK(code(bytes) == Code::kFormat);
  bytes = kBytes;
  bytes[4] = 2;
  BOOST_CHECK(code(bytes) == Code::kFormat);
}

BOOST_AUTO_TEST_CASE(a_file_is_replaced_as_a_whole) {
  const TemporaryFolder folder;
  const std::string path = JoinPath(folder.path(), "usage.waste");
  BOOST_TEST(!ReadUsageLog(path).ok());
  BOOST_REQUIRE(WriteUsageLog(kUsage, path).ok());
  BOOST_REQUIRE(WriteUsageLog(UsageLog(), path).ok());
  BOOST_TEST((*ReadUsageLog(path) == UsageLog()));
  BOOST_CHECK(WriteUsageLog(kUsage, JoinPath(folder.path(), "no/usage.waste")).code() == Code::kIo);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
