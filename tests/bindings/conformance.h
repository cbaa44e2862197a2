// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of the bindings, run by C: what stands in bindings/conformance/*.json, put
// through the public header. The other languages check the same files with code of their own, so
// this is also where the expected values come from (tests/bindings/write_expected.cc).

#ifndef WASTE_TESTS_BINDINGS_CONFORMANCE_H_
#define WASTE_TESTS_BINDINGS_CONFORMANCE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/capi.h"

namespace waste_test {

using Json = nlohmann::ordered_json;

// bindings/conformance of the source tree.
std::string ConformanceFolder();
Json ReadConformance(const std::string& file);  // "mini.json", "scripted.json"

// The model that a suite names, or nullptr where each case has a script of its own. `isa`:
// WASTE_ISA_..., which must not change what comes out.
Model OpenSuite(const Json& suite, int32_t isa = WASTE_ISA_BEST);

// What came of each turn of a case: the "expect" objects. `shared` is the suite's model.
std::vector<Json> RunCase(const Json& suite, const Json& test_case, const Model& shared);

// The token ids of one entry of "tokenize".
std::vector<int32_t> RunTokenize(const Json& entry, const Model& model);

// Why `actual` is not `expected`, or an empty text. Log-probabilities may differ by 1e-4.
std::string Difference(const Json& expected, const Json& actual);

}  // namespace waste_test

#endif  // WASTE_TESTS_BINDINGS_CONFORMANCE_H_
