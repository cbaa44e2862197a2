// SPDX-License-Identifier: Apache-2.0
//
// What cannot be read, or is found damaged, is read once more: what passes is not noticed, what
// stays is an error after two reads.

#include <boost/test/unit_test.hpp>

#include "support/fake_file.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr int64_t kRecord = 8192;
constexpr int64_t kMagicBit = 3, kPayloadBit = 8 * 5000;

struct Fixture {
  Fixture() : container(tiny.Open(IoMode::kBuffered, opener.opener())) {}

  Status ReadRecord(bool verify) { return container->ReadRecord(1, 2, bytes, verify); }
  Status ReadRow() const {
    std::vector<float> row(40);
    return container->ReadTrunkRow(container->manifest().trunk[0], 0, row);
  }

  TinyContainer tiny;
  FakeOpener opener;
  std::shared_ptr<FileFaults> bank = opener.Fake("experts-L1.bin");
  std::shared_ptr<FileFaults> trunk = opener.Fake("trunk.bin");
  std::unique_ptr<Container> container;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kRecord);
};

BOOST_FIXTURE_TEST_SUITE(read_again, Fixture)

BOOST_AUTO_TEST_CASE(a_sound_record_is_read_once) {
  BOOST_TEST(ReadRecord(true).ok());
  BOOST_TEST(bank->reads == 1);
  BOOST_TEST(ReadRow().ok());
  BOOST_TEST(trunk->reads == 1);
}

BOOST_AUTO_TEST_CASE(what_passes_is_not_noticed) {
  bank->fail_read = 0;
  BOOST_TEST(ReadRecord(false).ok());
  BOOST_TEST(bank->reads == 2);
  for (const int64_t bit : {kMagicBit, kPayloadBit}) {
    bank->read_bit = bit;
    bank->flip_read = +bank->reads;
    const int64_t reads = bank->reads;
    BOOST_TEST(ReadRecord(true).ok());
    BOOST_TEST(bank->reads == reads + 2);
  }
  trunk->fail_read = 0;
  BOOST_TEST(ReadRow().ok());
  BOOST_TEST(trunk->reads == 2);
}

BOOST_AUTO_TEST_CASE(what_stays_is_an_error_after_two_reads) {
  bank->fail_from = 0;
  Status status = ReadRecord(false);
  BOOST_CHECK(status.code() == Code::kIo);
  BOOST_TEST(status.message().starts_with("bank 1, expert 2: " + tiny.PathOf("experts-L1.bin")));
  BOOST_TEST(bank->reads == 2);
  bank->Heal();
  bank->read_bit = kPayloadBit;
  bank->flip_from = 0;
  status = ReadRecord(true);
  BOOST_CHECK(status.code() == Code::kCorrupt);
  BOOST_TEST(bank->reads == 4);
  trunk->end = 8;
  status = ReadRow();
  BOOST_CHECK(status.code() == Code::kCorrupt);
  BOOST_TEST(status.message().starts_with("trunk tensor \"model.norm.weight\": " +
                                          tiny.PathOf("trunk.bin")));
  BOOST_TEST(trunk->reads == 2);
}

BOOST_AUTO_TEST_CASE(what_does_not_exist_is_not_asked_for) {
  BOOST_CHECK(container->ReadRecord(1, 99, bytes, false).code() == Code::kArgument);
  BOOST_TEST(bank->reads == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
