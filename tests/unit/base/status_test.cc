// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <clocale>
#include <locale>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace waste {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return Failure(Code::kArgument, number, " is odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  WASTE_ASSIGN(const int half, Half(number));
  WASTE_ASSIGN(const int quarter, Half(half));
  return quarter;
}

Status CheckEven(int number, int& steps) {
  ++steps;
  WASTE_TRY(Half(number).status());
  ++steps;
  return Status();
}

// Prints numbers as 4.096, as a host's locale may.
class Grouping : public std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(a_status_is_ok_until_it_is_not) {
  BOOST_TEST(Status().ok());
  BOOST_TEST(Status().message().empty());
  BOOST_CHECK(Status().code() == Code::kOk);
  const Status bad(Code::kIo, "why");
  BOOST_TEST(!bad.ok());
  BOOST_CHECK(bad.code() == Code::kIo);
  BOOST_TEST(bad.message() == "why");
  BOOST_TEST(bad.needed_bytes() == 0);
}

BOOST_AUTO_TEST_CASE(a_refused_budget_says_what_it_needs) {
  const Status status = Failure(Code::kRamBudget, "too small").WithNeededBytes(int64_t{1} << 40);
  BOOST_CHECK(status.code() == Code::kRamBudget);
  BOOST_TEST(status.message() == "too small");
  BOOST_TEST(status.needed_bytes() == int64_t{1} << 40);
}

BOOST_AUTO_TEST_CASE(a_failure_joins_its_parts) {
  const std::string path = "a/b";
  const Status status =
      Failure(Code::kCorrupt, path, ": expert ", 37, " has ", int64_t{4096}, " bytes, ", 0.5);
  BOOST_TEST(status.message() == "a/b: expert 37 has 4096 bytes, 0.5");
}

BOOST_AUTO_TEST_CASE(numbers_do_not_depend_on_the_hosts_locale) {
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const Status status = Failure(Code::kIo, 1234567, " ", 0.5);
  std::locale::global(before);
  BOOST_TEST(status.message() == "1234567 0.5");
}

BOOST_AUTO_TEST_CASE(a_result_holds_a_value_or_the_reason) {
  const Result<int> good = Half(8);
  BOOST_TEST(good.ok());
  BOOST_TEST(*good == 4);
  BOOST_TEST(good.status().ok());
  const Result<int> bad = Half(7);
  BOOST_TEST(!bad.ok());
  BOOST_CHECK(bad.status().code() == Code::kArgument);
  BOOST_TEST(bad.status().message() == "7 is odd");
}

BOOST_AUTO_TEST_CASE(a_result_hands_over_what_cannot_be_copied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  BOOST_TEST(**result == 5);
  const std::unique_ptr<int> taken = *std::move(result);
  BOOST_TEST(*taken == 5);
}

BOOST_AUTO_TEST_CASE(assign_returns_the_first_failure) {
  BOOST_TEST(*Quarter(12) == 3);
  BOOST_TEST(Quarter(7).status().message() == "7 is odd");
  BOOST_TEST(Quarter(6).status().message() == "3 is odd");
}

BOOST_AUTO_TEST_CASE(try_returns_only_on_failure) {
  int steps = 0;
  BOOST_TEST(CheckEven(2, steps).ok());
  BOOST_TEST(steps == 2);
  BOOST_TEST(!CheckEven(3, steps).ok());
  BOOST_TEST(steps == 3);
}

BOOST_AUTO_TEST_CASE(a_check_that_holds_does_nothing) {
  int evaluated = 0;
  WASTE_CHECK(++evaluated == 1);
  BOOST_TEST(evaluated == 1);
}

#ifdef NDEBUG  // a debug build aborts
BOOST_AUTO_TEST_CASE(a_check_that_fails_throws_its_place_and_condition) {
  BOOST_CHECK_EXCEPTION(WASTE_CHECK(1 + 1 == 3), InternalError, [](const InternalError& error) {
    const std::string text = error.what();
    return text.find("status_test.cc:") != text.npos && text.find("1 + 1 == 3") != text.npos;
  });
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
