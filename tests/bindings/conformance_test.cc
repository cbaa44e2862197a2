// SPDX-License-Identifier: Apache-2.0
//
// Every case of bindings/conformance as a test case of its own name.

#include "bindings/conformance.h"

#include <boost/test/unit_test.hpp>

namespace waste_test {
namespace {

namespace unit_test = boost::unit_test;

void CheckCase(const Json& suite, const Json& test_case, const Model& model) {
  const std::vector<Json> results = RunCase(suite, test_case, model);
  BOOST_REQUIRE(!results.empty());
  for (size_t i = 0; i < results.size(); i++)
    BOOST_TEST(Difference(test_case["turns"][i].at("expect"), results[i]) == "",
               "turn " << i << ": " << Difference(test_case["turns"][i]["expect"], results[i]));
}

unit_test::test_suite* SuiteOf(const std::string& file, const std::string& name, int32_t isa) {
  const auto suite = std::make_shared<const Json>(ReadConformance(file));
  const auto model = std::make_shared<const Model>(OpenSuite(*suite, isa));
  auto* tests = BOOST_TEST_SUITE(name);
  for (const Json& test_case : suite->at("cases"))
    tests->add(unit_test::make_test_case([=] { CheckCase(*suite, test_case, *model); },
                                         test_case.at("name").get<std::string>(), __FILE__,
                                         __LINE__));
  int64_t at = 0;
  for (const Json& entry : suite->value("tokenize", Json::array()))
    tests->add(unit_test::make_test_case(
        [=] {
          BOOST_TEST(RunTokenize(entry, *model) == entry.at("tokens").get<std::vector<int32_t>>(),
                     boost::test_tools::per_element());
        },
        "tokenize_" + std::to_string(at++), __FILE__, __LINE__));
  return tests;
}

struct Register {
  Register() {
    unit_test::test_suite& all = unit_test::framework::master_test_suite();
    all.add(SuiteOf("mini.json", "mini", WASTE_ISA_BEST));
#if defined(__x86_64__)
    // What was written on a machine with AVX-512 holds on one without.
    if (__builtin_cpu_supports("avx2")) all.add(SuiteOf("mini.json", "mini_avx2", WASTE_ISA_AVX2));
#endif
    all.add(SuiteOf("scripted.json", "scripted", WASTE_ISA_BEST));
  }
};

}  // namespace

// Boost registers suites before main; these come from files, so they are added there as well.
const Register registered;

}  // namespace waste_test
