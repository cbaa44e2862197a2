# SPDX-License-Identifier: Apache-2.0
"""waste.h is C99 and C++ without a warning, and its signatures use only types that every binding
maps. Headers of core without a .cc that would show it compile alone.
"""
import concurrent.futures
import os
import re
import subprocess
import unittest

import cpp_source
import tree

HEADER = "capi/include/waste/waste.h"
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
DIALECTS = [("gcc", "c", "c99"), ("gcc", "c", "c17"), ("g++", "c++", "c++11"),
            ("g++", "c++", "c++20"), ("clang-14", "c", "c99"), ("clang++-14", "c++", "c++20")]
# SWIG's C# maps size_t to 32 bits, Java maps uint64_t to BigInteger, long has two sizes.
FORBIDDEN_TYPES = re.compile(r"\b(size_t|bool|long|unsigned|short|enum|uint8_t|uint16_t|uint64_t|"
                             r"uintptr_t|float\s+\w+\s*;)\b")


def compile_text(compiler, language, standard, text, includes=("capi/include",)):
    return subprocess.run(
        [compiler, "-x", language, f"-std={standard}", *WARNINGS,
         *(f"-I{tree.ROOT / include}" for include in includes), "-"],
        input=text, text=True, capture_output=True, check=False)


def forbidden_types(text):
    """Types of signatures and structs that a binding could not map, apart from struct_size."""
    code = cpp_source.without_preprocessor(cpp_source.without_comments(text))
    code = re.sub(r"\buint32_t struct_size\b", "", code)
    return sorted(set(re.findall(r"\buint32_t\b", code)) | set(FORBIDDEN_TYPES.findall(code)))


class PublicHeader(unittest.TestCase):
    def test_it_compiles_in_every_dialect(self):
        for compiler, language, standard in DIALECTS:
            with self.subTest(compiler=compiler, standard=standard):
                result = compile_text(compiler, language, standard,
                                      "#include <waste/waste.h>\nint main(void) { return 0; }\n")
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_its_types_map_to_every_language(self):
        self.assertEqual(forbidden_types((tree.ROOT / HEADER).read_text()), [])

    def test_a_type_that_does_not_map_is_found(self):
        self.assertEqual(forbidden_types("void f(size_t a, uint64_t b);\n"), ["size_t", "uint64_t"])
        self.assertEqual(forbidden_types("void f(uint32_t a);\n"), ["uint32_t"])

    def test_a_header_that_is_no_c99_is_found(self):
        result = compile_text("gcc", "c", "c99",
                              "#include <waste/waste.h>\ntypedef int a; typedef int a;\n")
        self.assertNotEqual(result.returncode, 0)


class CoreHeaders(unittest.TestCase):
    def test_headers_without_a_source_compile_alone(self):
        paths = set(tree.files())
        lonely = [path[len("core/"):] for path in sorted(paths)
                  if path.startswith("core/") and path.endswith(".h") and
                  path[:-2] + ".cc" not in paths]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda name: compile_text(
                "g++", "c++", "c++20", f'#include "{name}"\n', ("core",)), lonely)
        for name, result in zip(lonely, results):
            with self.subTest(header=name):
                self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
