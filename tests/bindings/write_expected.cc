// SPDX-License-Identifier: Apache-2.0
//
// conformance_write FILE.json...: runs the cases of suites of bindings/conformance through C and
// writes what came out into them as what is expected, one line a turn. For new cases: the diff is
// to be read before it is committed.

#include <iostream>

#include "bindings/conformance.h"

namespace waste_test {
namespace {

// One line for each member of a case, one for each turn.
std::string PrintItem(Json item) {
  const Json turns = item.value("turns", Json());
  item.erase("turns");
  std::string line = item.dump();
  if (turns.is_null()) return line;
  line.pop_back();
  line.append(", \"turns\": [");
  const char* before = "\n    ";
  for (const Json& turn : turns) {
    line.append(before).append(turn.dump());
    before = ",\n    ";
  }
  return line.append("]}");
}

std::string Print(const Json& suite) {
  std::string out = "{";
  const char* before = "\n ";
  for (const auto& [key, value] : suite.items()) {
    out.append(before).append(Json(key).dump()).append(": ");
    before = ",\n ";
    if (!value.is_array()) {
      out.append(value.dump());
      continue;
    }
    const char* open = "[\n  ";
    for (const Json& item : value) {
      out.append(open).append(PrintItem(item));
      open = ",\n  ";
    }
    out.append("]");
  }
  return out.append("\n}\n");
}

void Write(const std::string& file) {
  Json suite = ReadConformance(file);
  const Model model = OpenSuite(suite);
  for (Json& test_case : suite["cases"]) {
    const std::vector<Json> results = RunCase(suite, test_case, model);
    for (size_t i = 0; i < results.size(); i++) test_case["turns"][i]["expect"] = results[i];
  }
  if (suite.contains("tokenize"))
    for (Json& entry : suite["tokenize"]) entry["tokens"] = RunTokenize(entry, model);
  WriteFile(ConformanceFolder() + file, Print(suite));
}

}  // namespace
}  // namespace waste_test

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; i++) waste_test::Write(argv[i]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
