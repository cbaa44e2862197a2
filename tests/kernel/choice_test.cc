// SPDX-License-Identifier: Apache-2.0

#include <cctype>

#include "support/kernel_case.h"

namespace waste {
namespace {

// The other way round: runs only where the instruction set is missing.
struct LacksIsa {
  Isa isa;

  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result result(!CpuHas(isa));
    result.message() << "this machine has " << IsaName(isa) << ", so it cannot refuse it";
    return result;
  }
};

// Not "avx512" in "avx512vbmi".
bool HasWord(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (end == text.size() || std::isalnum(static_cast<unsigned char>(text[end])) == 0) return true;
  }
  return false;
}

void RequireRefusal(Isa isa, const std::string& name) {
  const Result<const Kernels*> kernels = KernelsFor(isa);
  BOOST_REQUIRE(!kernels.ok());
  BOOST_TEST((kernels.status().code() == Code::kUnsupported));
  BOOST_TEST(kernels.status().message().find(name) != std::string::npos);
  for (const Isa other : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vbmi, Isa::kNeon}) {
    const bool is_named = HasWord(kernels.status().message(), IsaName(other));
    if (other != isa) BOOST_TEST(is_named == KernelsFor(other).ok(), IsaName(other));
  }
}

BOOST_AUTO_TEST_SUITE(choice)

BOOST_AUTO_TEST_CASE(the_best_table_is_the_widest_that_the_machine_has) {
  const Isa expected = CpuHas(Isa::kAvx512Vbmi) ? Isa::kAvx512Vbmi
                       : CpuHas(Isa::kAvx512)   ? Isa::kAvx512
                       : CpuHas(Isa::kAvx2)     ? Isa::kAvx2
                       : CpuHas(Isa::kNeon)     ? Isa::kNeon
                                                : Isa::kScalar;
  const Result<const Kernels*> kernels = KernelsFor(Isa::kBest);
  BOOST_REQUIRE(kernels.ok());
  BOOST_TEST(((*kernels)->isa == expected));
}

WASTE_KERNEL_CASE(every_function_of_a_table_is_there) {
  BOOST_TEST(kernels.dot != nullptr);
  BOOST_TEST(kernels.axpy != nullptr);
  BOOST_TEST(kernels.multiply != nullptr);
  BOOST_TEST(kernels.scale_rows != nullptr);
  BOOST_TEST(kernels.trunk_rows != nullptr);
  BOOST_TEST(kernels.trunk_transposed != nullptr);
  BOOST_TEST(kernels.expert_rows != nullptr);
  BOOST_TEST(kernels.delta_step != nullptr);
  BOOST_TEST(kernels.decayed_dots != nullptr);
  BOOST_TEST(kernels.multiply_add != nullptr);
  for (const auto function : {kernels.exp, kernels.sigmoid, kernels.softplus, kernels.tanh})
    BOOST_TEST(function != nullptr);
  BOOST_TEST((kernels.build_table == nullptr) == (kernels.table_rows == nullptr));
  BOOST_TEST((kernels.build_table == nullptr) == (kernels.finish_rows == nullptr));
  BOOST_TEST((kernels.split_input == nullptr) == (kernels.split_rows == nullptr));
  BOOST_TEST((kernels.split_input == nullptr) == (kernels.trunk_words == nullptr));
  BOOST_TEST((kernels.round_trunk_input == nullptr) == (kernels.trunk_words == nullptr));
  BOOST_TEST((kernels.round_expert_input == nullptr) == (kernels.expert_words == nullptr));
}

BOOST_AUTO_TEST_CASE(numbers_that_are_no_instruction_set_are_refused) {
  RequireRefusal(static_cast<Isa>(99), "99");
  RequireRefusal(static_cast<Isa>(-1), "-1");
}

BOOST_AUTO_TEST_CASE(missing_avx2_is_refused_and_not_replaced,
                     *boost::unit_test::precondition(LacksIsa{Isa::kAvx2})) {
  RequireRefusal(Isa::kAvx2, "avx2");
}

BOOST_AUTO_TEST_CASE(missing_avx512_is_refused_and_not_replaced,
                     *boost::unit_test::precondition(LacksIsa{Isa::kAvx512})) {
  RequireRefusal(Isa::kAvx512, "avx512");
}

BOOST_AUTO_TEST_CASE(missing_vbmi_is_refused_and_not_replaced,
                     *boost::unit_test::precondition(LacksIsa{Isa::kAvx512Vbmi})) {
  RequireRefusal(Isa::kAvx512Vbmi, "avx512vbmi");
}

BOOST_AUTO_TEST_CASE(missing_neon_is_refused_and_not_replaced,
                     *boost::unit_test::precondition(LacksIsa{Isa::kNeon})) {
  RequireRefusal(Isa::kNeon, "neon");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
