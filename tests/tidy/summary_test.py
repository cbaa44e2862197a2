# SPDX-License-Identifier: Apache-2.0
"""The script that counts test cases counts failures, skips and reports that broke off."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tree

SUMMARY = tree.ROOT / "tests/support/summary.py"
GOOD = '<testsuite name="a"><testcase name="one"/><testcase name="two"></testcase></testsuite>'
BAD = ('<testsuite><testsuite><testcase name="three"><failure>x</failure></testcase></testsuite>'
       '</testsuite>')
SKIPPED = '<testsuite><testcase name="four"><skipped>no such CPU</skipped></testcase></testsuite>'
LEFT_OUT = '<testsuite><testcase name="five"><skipped>disabled</skipped></testcase></testsuite>'
CASES = [
    ([GOOD], 0, "2 passed, 0 failed, 0 skipped"),
    ([GOOD, BAD], 1, "2 passed, 1 failed, 0 skipped"),
    ([GOOD, SKIPPED], 0, "2 passed, 0 failed, 1 skipped"),
    ([GOOD, LEFT_OUT], 0, "2 passed, 0 failed, 0 skipped"),
    ([GOOD, GOOD[:60]], 1, "2 passed, 1 failed, 0 skipped"),
    ([SKIPPED], 1, "0 passed, 0 failed, 1 skipped"),
    ([], 1, "0 passed, 0 failed, 0 skipped"),
]


class Summary(unittest.TestCase):
    def test_reports_are_counted(self):
        for reports, status, last_line in CASES:
            with self.subTest(last_line=last_line), tempfile.TemporaryDirectory() as folder:
                for number, report in enumerate(reports):
                    pathlib.Path(folder, f"{number}.xml").write_text(report)
                result = subprocess.run([sys.executable, SUMMARY, folder], text=True,
                                        capture_output=True, check=False)
                self.assertEqual(result.stdout.splitlines()[-1], last_line)
                self.assertEqual(result.returncode, status)


if __name__ == "__main__":
    unittest.main()
