// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include "os/cpu_list.h"

namespace waste {
namespace {

CpuSet SetOf(const std::vector<int32_t>& cpus) {
  CpuSet set;
  for (const int32_t cpu : cpus) set.Add(cpu);
  return set;
}

std::string MessageOf(const std::string& text) {
  const auto cpus = ParseCpuList(text);
  BOOST_REQUIRE(!cpus.ok());
  BOOST_TEST((cpus.status().code() == Code::kArgument));
  return cpus.status().message();
}

BOOST_AUTO_TEST_SUITE(cpu_list)

BOOST_AUTO_TEST_CASE(numbers_and_ranges_make_a_set) {
  const struct {
    const char* text;
    std::vector<int32_t> cpus;
    const char* printed;
  } kCases[] = {
      {"0", {0}, "0"},
      {"0-3,8", {0, 1, 2, 3, 8}, "0-3,8"},
      {"8,0-3", {0, 1, 2, 3, 8}, "0-3,8"},
      {"5-5", {5}, "5"},
      {"1,2,3", {1, 2, 3}, "1-3"},
      {"3,3,2-4", {2, 3, 4}, "2-4"},
      {"63-64", {63, 64}, "63-64"},
      {"007", {7}, "7"},
      {"8191", {8191}, "8191"},
      {"8190-8191,0", {0, 8190, 8191}, "0,8190-8191"},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.text) {
      const auto cpus = ParseCpuList(c.text);
      BOOST_REQUIRE(cpus.ok());
      BOOST_TEST((*cpus == SetOf(c.cpus)));
      BOOST_TEST(cpus->count() == static_cast<int32_t>(c.cpus.size()));
      BOOST_TEST(PrintCpuList(*cpus) == c.printed);
    }
  }
  BOOST_TEST(ParseCpuList("0-8191")->count() == 8192);
  BOOST_TEST(PrintCpuList(CpuSet()).empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_list_is_refused_with_its_place_and_text) {
  const struct {
    std::string text;
    const char* said;
  } kCases[] = {
      {"", "item 1 is empty"},
      {",", "item 1 is empty"},
      {"0,", "item 2 is empty"},
      {"0,,2", "item 2 is empty"},
      {"0,3-1", R"(item 2, "3-1", ends before it begins)"},
      {"a", R"(item 1, "a", is no CPU)"},
      {"0x3", R"("0x3", is no CPU)"},
      {"-", R"("-", is no CPU)"},
      {"-1", R"("-1", is no CPU)"},
      {"1-", R"("1-", is no CPU)"},
      {"1--2", R"("1--2", is no CPU)"},
      {"1-2-3", R"("1-2-3", is no CPU)"},
      {"0-7:2", R"("0-7:2", is no CPU)"},
      {"+1", R"("+1", is no CPU)"},
      {"1.5", R"("1.5", is no CPU)"},
      {" 1", R"(" 1", is no CPU)"},
      {"0, 1", R"(item 2, " 1", is no CPU)"},
      {"1\n", "is no CPU"},
      {std::string("0\0", 2), "is no CPU"},
      {"\xd9\xa1", "is no CPU"},  // a digit, but not of ASCII
      {"8192", R"("8192", is beyond the last CPU there can be, 8191)"},
      {"0-8192", "is beyond"},
      {"4294967296", "is beyond"},
      {"18446744073709551616", "is beyond"},
      {"0-99999999999999999999999", "is beyond"},
      {"99999999999999999999999-0", "is beyond"},
  };
  for (const auto& c : kCases) {
    BOOST_TEST_CONTEXT(c.text) {
      const std::string message = MessageOf(c.text);
      BOOST_TEST(message.find(c.said) != std::string::npos, message);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_text_of_a_megabyte_is_read_or_refused_in_a_short_message) {
  constexpr size_t kMiB = size_t{1} << 20;
  std::string many;
  while (many.size() < kMiB) many += "0-3,";
  BOOST_TEST((*ParseCpuList(many + "8") == SetOf({0, 1, 2, 3, 8})));
  BOOST_TEST(MessageOf(many).find("item 262145 is empty") != std::string::npos);
  for (const char c : {'9', 'a', '-', ',', ' ', '\0'}) {
    const std::string message = MessageOf(std::string(kMiB, c));
    BOOST_TEST(message.size() < 200u);
  }
  BOOST_TEST(ParseCpuList(std::string(kMiB, '0'))->count() == 1);
}

BOOST_AUTO_TEST_CASE(sets_are_compared_and_taken_from_each_other) {
  const CpuSet some = SetOf({0, 1, 70});
  BOOST_TEST(some.Has(70));
  BOOST_TEST(!some.Has(69));
  BOOST_TEST((some.Without(SetOf({1, 2})) == SetOf({0, 70})));
  BOOST_TEST(some.Without(some).empty());
  BOOST_TEST((some != SetOf({0, 1})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
