# SPDX-License-Identifier: Apache-2.0
"""Every C++ file is as clang-format leaves it."""
import subprocess
import unittest

import tree

FORMATTER = "clang-format-14"  # another version breaks lines elsewhere


def check(arguments, text=None):
    return subprocess.run([FORMATTER, "--dry-run", "-Werror", *arguments], cwd=tree.ROOT, text=True,
                          input=text, capture_output=True, check=False)


class Format(unittest.TestCase):
    def test_every_file_is_formatted(self):
        names = [name for name, _ in tree.sources(tree.CPP_SUFFIXES) if
                 name != "capi/include/waste/waste.h"]  # aligned by hand: it is read as a page
        result = check(names)
        bad = sorted({line.split(":")[0] for line in result.stderr.splitlines()
                      if "clang-format-violations" in line})
        self.assertEqual(result.returncode, 0, f"run {FORMATTER} -i {' '.join(bad)}")

    def test_a_file_that_is_not_formatted_is_found(self):
        self.assertNotEqual(check(["--assume-filename=core/os/a.cc"], "int  a ;\n").returncode, 0)
        self.assertEqual(check(["--assume-filename=core/os/a.cc"], "int a;\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()
