// SPDX-License-Identifier: Apache-2.0
//
// The test runner, compiled once: tests include <boost/test/unit_test.hpp> only.

#define BOOST_TEST_MODULE waste
#include <boost/test/unit_test.hpp>
