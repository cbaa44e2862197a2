# SPDX-License-Identifier: Apache-2.0
"""The top level of the repository is what docs/architecture.md draws, and nothing else."""
import unittest

import tree

FOLDERS = {"capi", "core", "bindings", "examples", "tests", "docs", ".ci"}
FILES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "CHANGELOG.md",
         "CONTRIBUTING.md", ".clang-format", ".clang-tidy", ".gitignore"}
TEST_FOLDERS = {"unit", "kernel", "golden", "capi", "bindings", "system", "fuzz", "bench", "tidy",
                "support", "oracle"}


def strangers(names):
    """What stands at the top level, or in tests/, that should not."""
    found = set()
    for name in names:
        first, _, rest = name.partition("/")
        if first not in (FOLDERS if rest else FILES):
            found.add(first)
        if first == "tests" and "/" in rest and rest.split("/")[0] not in TEST_FOLDERS:
            found.add("tests/" + rest.split("/")[0])
    return found


class TopLevel(unittest.TestCase):
    def test_nothing_stands_there_that_should_not(self):
        self.assertEqual(strangers(tree.files()), set())

    def test_the_root_files_are_there(self):
        self.assertEqual(FILES - set(tree.files()), set())

    def test_strangers_are_found(self):
        self.assertEqual(strangers(["notes.txt", "src/a.cc", "core/os/a.cc", "tests/more/a.cc"]),
                         {"notes.txt", "src", "tests/more"})

    def test_no_large_or_binary_file_but_the_models_and_images(self):
        large = [name for name in tree.files() if (tree.ROOT / name).stat().st_size > 1 << 20 and
                 not name.startswith("examples/mini/mini.waste/")]
        self.assertEqual(large, [])


if __name__ == "__main__":
    unittest.main()
