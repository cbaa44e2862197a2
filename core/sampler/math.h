// SPDX-License-Identifier: Apache-2.0
//
// exp and log in f64, made of + - * / and bit operations only. The C library's differ between
// systems in their last bits, and one such bit can change a sampled token; these round the same
// everywhere (the tree is built without contraction). At most 2 ulp off. Pure functions; any
// thread.

#ifndef WASTE_CORE_SAMPLER_MATH_H_
#define WASTE_CORE_SAMPLER_MATH_H_

namespace waste {

// e^x: 0 below the range, infinity above it, NaN for NaN.
double PortableExp(double x);

// The natural logarithm: -infinity for 0, NaN for what is negative or NaN.
double PortableLog(double x);

}  // namespace waste

#endif  // WASTE_CORE_SAMPLER_MATH_H_
