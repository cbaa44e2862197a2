// SPDX-License-Identifier: Apache-2.0
//
// One test body for every instruction set: WASTE_KERNEL_CASE(name) { ... kernels.dot ... } makes a
// test case of each that is for this kind of machine. Those that it lacks are skipped and counted
// as such, with the name of what is missing. One thread.

#ifndef WASTE_TESTS_SUPPORT_KERNEL_CASE_H_
#define WASTE_TESTS_SUPPORT_KERNEL_CASE_H_

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace waste {

// A precondition of a test case. It asks the CPU, not KernelsFor, so that a table which is wrongly
// refused is a failure and not a skip.
struct HasIsa {
  Isa isa;

  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result result(CpuHas(isa));
    result.message() << "this machine has no " << IsaName(isa);
    return result;
  }
};

inline const Kernels& RequireKernels(Isa isa) {
  const Result<const Kernels*> kernels = KernelsFor(isa);
  BOOST_REQUIRE_MESSAGE(kernels.ok(), kernels.status().message());
  BOOST_REQUIRE((*kernels)->isa == isa);
  return **kernels;
}

#define WASTE_KERNEL_CASE_ON(name, suffix, isa)                                           \
  BOOST_AUTO_TEST_CASE(name##suffix, *boost::unit_test::precondition(HasIsa{Isa::isa})) { \
    name(RequireKernels(Isa::isa));                                                       \
  }
#if defined(__aarch64__)
#define WASTE_KERNEL_CASES_OF_MACHINE(name) WASTE_KERNEL_CASE_ON(name, _on_neon, kNeon)
#else
#define WASTE_KERNEL_CASES_OF_MACHINE(name)       \
  WASTE_KERNEL_CASE_ON(name, _on_avx2, kAvx2)     \
  WASTE_KERNEL_CASE_ON(name, _on_avx512, kAvx512) \
  WASTE_KERNEL_CASE_ON(name, _on_avx512vbmi, kAvx512Vbmi)
#endif
#define WASTE_KERNEL_CASE(name)                   \
  static void name(const Kernels& kernels);       \
  WASTE_KERNEL_CASE_ON(name, _on_scalar, kScalar) \
  WASTE_KERNEL_CASES_OF_MACHINE(name)             \
  static void name(const Kernels& kernels)

// Half an f32 step at 1: the largest relative error of one rounding.
inline constexpr double kRounding = 0x1p-24;

inline std::vector<float> RandomFloats(uint32_t seed, int64_t size) {
  std::mt19937 random(seed);
  std::vector<float> values(size);
  for (float& value : values) {
    value = static_cast<float>(static_cast<int32_t>(random() >> 8)) * 0x1p-23f - 1.0f;
  }
  return values;
}

inline std::vector<uint8_t> RandomBytes(uint32_t seed, int64_t size) {
  std::mt19937 random(seed);
  std::vector<uint8_t> values(size);
  for (uint8_t& value : values) value = static_cast<uint8_t>(random());
  return values;
}

// A dot product in double, and the sum of its terms' magnitudes, to which errors are relative.
struct ExactDot {
  double value = 0;
  double magnitude = 0;

  ExactDot(const float* a, const float* b, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      value += double{a[i]} * b[i];
      magnitude += std::fabs(double{a[i]} * b[i]);
    }
  }
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_KERNEL_CASE_H_
