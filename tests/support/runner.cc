// SPDX-License-Identifier: Apache-2.0
//
// The test runner, compiled once: tests include <boost/test/unit_test.hpp> only.

#define BOOST_TEST_MODULE waste
#if defined(WASTE_BOOST_TEST_INCLUDED)
#include <boost/test/included/unit_test.hpp>  // all of the library
#else
#include <boost/test/unit_test.hpp>
#endif
