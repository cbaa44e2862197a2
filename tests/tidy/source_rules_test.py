# SPDX-License-Identifier: Apache-2.0
"""The source rules hold in the tree, and each finds the snippets that break it."""
import unittest

import cpp_source
import source_rules as rules
import tree

SPDX_CPP = "// SPDX-License-Identifier: Apache-2.0\n"
TAB = "\t"
LEFT_OVER = "FIX" + "ME"


def body(lines, head="void Long()"):
    return head + " {\n" + "  Work();\n" * (lines - 2) + "}\n"


# (rule, path, text that breaks it)
BROKEN = [
    (rules.spdx_line, "core/os/a.cc", "// Something else.\n"),
    (rules.spdx_line, "tests/a.sh", "#!/bin/sh\n# Something else.\n"),
    (rules.header_comment, "core/os/a.h", SPDX_CPP + "//\n// One line.\n#ifndef A\n"),
    (rules.header_comment, "core/os/a.h", SPDX_CPP + "\n#ifndef A\n"),
    (rules.header_comment, "core/os/a.cc", SPDX_CPP + "//\n" + "// Much.\n" * 17),
    (rules.header_comment, "tests/a.py", "# SPDX-License-Identifier: Apache-2.0\nimport os\n"),
    (rules.lines_and_columns, "core/os/a.cc", "// " + "x" * 98 + "\n"),
    (rules.lines_and_columns, "core/os/a.cc", TAB + "int a;\n"),
    (rules.lines_and_columns, "core/os/a.cc", "int a; \n"),
    (rules.lines_and_columns, "core/os/a.cc", f"// {LEFT_OVER}: later\n"),
    (rules.lines_and_columns, "core/os/a.cc", 'Open("/' + 'tmp/a");\n'),
    (rules.lines_and_columns, "core/os/a.cc", "int a;\n" * 801),
    (rules.lines_and_columns, "core/os/a.cc", "int a;"),
    (rules.function_length, "core/os/a.cc", body(71)),
    (rules.function_length, "core/os/a.cc", "namespace a {\n" + body(71) + "}\n"),
    (rules.function_length, "core/os/a.h", "class A {\n" + body(71) + "};\n"),
    (rules.function_length, "core/os/a.cc", body(71, "A::A(int b) : b_{b}, c_(b)")),
    (rules.function_length, "tests/a_test.cc", body(71, "BOOST_AUTO_TEST_CASE(a)")),
    (rules.function_length, "tests/a.py", "def f():\n" + "    g()\n" * 70),
    (rules.core_calls, "core/os/a.cc", 'void F() { std::printf("x"); }\n'),
    (rules.core_calls, "core/os/a.cc", "void F() { std::cout << 1; }\n"),
    (rules.core_calls, "core/os/a.cc", "void F() { abort(); }\n"),
    (rules.core_calls, "core/os/a.cc", 'const char* home = getenv("HOME");\n'),
    (rules.core_calls, "capi/a.cc", "void F() { std::signal(2, nullptr); }\n"),
    (rules.c_linkage, "core/os/a.cc", 'extern "C" void f();\n'),
    (rules.instruction_sets, "core/kernels/a_avx512vbmi.cc", 'target("avx512f,bmi2") int F();\n'),
    (rules.instruction_sets, "core/kernels/a_avx2.cc", 'target("avx512f") int F();\n'),
    (rules.mutable_globals, "core/os/a.cc", "namespace waste {\nint count = 0;\n}\n"),
    (rules.mutable_globals, "core/os/a.cc", "std::vector<int> list;\n"),
    (rules.mutable_globals, "core/os/a.cc", "static std::atomic<int> count;\n"),
    (rules.mutable_globals, "core/os/a.cc", "void F() {\n  static int count = 0;\n}\n"),
    (rules.mutable_globals, "core/os/a.cc", "void F() {\n  thread_local int count = 0;\n}\n"),
    (rules.header_guard, "core/os/a.h", "#pragma once\n"),
    (rules.test_names, "tests/unit/os/a_test.cc", "BOOST_AUTO_TEST_CASE(TestOpen) {}\n"),
    (rules.test_names, "tests/unit/os/a_test.cc", "BOOST_AUTO_TEST_SUITE(FileSuite)\n"),
]
# (rule, path, text that it has nothing to say about)
SOUND = [
    (rules.spdx_line, "tests/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"),
    (rules.header_comment, "core/os/a.h", SPDX_CPP + "//\n// One,\n// two,\n// three.\n#if A\n"),
    (rules.header_comment, "core/os/a.cc", SPDX_CPP + "\n#include <vector>\n"),
    (rules.lines_and_columns, "core/os/a.cc", "// " + "x" * 97 + "\n"),
    (rules.function_length, "core/os/a.cc", body(70)),
    (rules.function_length, "core/os/a.cc", "namespace a {\n" + body(60) + body(60) + "}\n"),
    (rules.function_length, "core/os/a.cc", "struct A {\n" + "  int a;\n" * 90 + "};\n"),
    (rules.core_calls, "core/os/a.cc", "// exit() is for programs\nvoid F() { on_exit_(1); }\n"),
    (rules.core_calls, "examples/cli/a.cc", 'void F() { std::printf("x"); }\n'),
    (rules.c_linkage, "capi/a.cc", 'extern "C" void f();\n'),
    (rules.instruction_sets, "core/kernels/a_avx512.cc", 'target("avx2,avx512bw") int F();\n'),
    (rules.instruction_sets, "examples/cli/a.cc", 'target("avx512bf16") int F();\n'),
    (rules.mutable_globals, "core/os/a.cc", "constexpr int kSize = 4;\nconst int kOther = 5;\n"),
    (rules.mutable_globals, "core/os/a.cc", "struct A {\n  int a = 0;\n  static int B();\n};\n"),
    (rules.mutable_globals, "core/os/a.cc", "int F(int a = 3);\nusing B = std::vector<int>;\n"),
    (rules.mutable_globals, "core/os/a.cc", "void F() {\n  int a;\n  static const int b = 1;\n"),
    (rules.test_names, "tests/unit/os/a_test.cc", "BOOST_AUTO_TEST_CASE(a_file_of_0_bytes) {}\n"),
]


class SourceRules(unittest.TestCase):
    def test_every_rule_holds_in_the_tree(self):
        sources = tree.sources()
        paths = {path for path, _ in sources}
        for rule in rules.ALL_RULES:
            with self.subTest(rule=rule.__name__):
                found = [problem for path, text in sources for problem in rule(path, text)]
                self.assertEqual(found, [], "\n" + "\n".join(found))
        with self.subTest(rule="own_header_first"):
            found = [problem for path, text in sources
                     for problem in rules.own_header_first(path, text, paths)]
            self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_broken_snippets_are_found(self):
        for rule, path, text in BROKEN:
            with self.subTest(rule=rule.__name__, path=path, text=text[:60]):
                self.assertNotEqual(rule(path, text), [])

    def test_sound_snippets_pass(self):
        for rule, path, text in SOUND:
            with self.subTest(rule=rule.__name__, path=path, text=text[:60]):
                self.assertEqual(rule(path, text), [])

    def test_a_header_that_is_not_first_is_found(self):
        text = '#include <vector>\n#include "os/a.h"\n'
        self.assertEqual(
            len(rules.own_header_first("core/os/a.cc", text, {"core/os/a.h", "core/os/a.cc"})), 1)
        self.assertEqual(rules.own_header_first("core/os/a.cc", text, {"core/os/a.cc"}), [])

    def test_every_rule_has_a_snippet_that_breaks_it(self):
        self.assertEqual({rule for rule, _, _ in BROKEN}, set(rules.ALL_RULES))


class CppSource(unittest.TestCase):
    def test_comments_and_strings_are_blanked_and_lines_stay(self):
        text = 'a /* { \n } */ "b{" R"x({")x" \'{\' // {\nc\n'
        code = cpp_source.without_comments(text)
        self.assertEqual(code.count("\n"), text.count("\n"))
        self.assertNotIn("{", code)

    def test_digit_separators_are_no_characters(self):
        self.assertIn("{", cpp_source.without_comments("int a = 1'000; void F() { b = 2'000; }"))

    def test_functions_are_found_with_their_names_and_lengths(self):
        text = ("namespace a {\n#define B(x) {\nstruct C {\n  C() : d_{1} {\n    E();\n  }\n"
                "  int F() const { return 1; }\n};\nauto G = [] {\n};\n}\n")
        self.assertEqual(rules.functions("a.cc", text), [("C", 4, 3), ("F", 7, 1)])


if __name__ == "__main__":
    unittest.main()
