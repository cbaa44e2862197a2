# SPDX-License-Identifier: Apache-2.0
"""Runs the Python tests of folders and writes a JUnit file.

    python3 tests/support/run_python.py REPORT.xml FOLDER...

A test is a unittest.TestCase in a file named *_test.py. A file that cannot be loaded is one failed
case. Prints a line for each failed or slow case. Exit code 0 only if nothing failed.
"""
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree

SLOW_SECONDS = 5


class Report(unittest.TestResult):
    """Collects <testcase> elements as the tests end."""

    def __init__(self):
        super().__init__()
        self.root = ElementTree.Element("testsuite", name="python")
        self.started = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def addSuccess(self, test):
        self.add_case(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.add_case(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.add_case(test, "failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.add_case(test, "error", self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.add_case(subtest, "failure", self._exc_info_to_string(err, test))

    def add_case(self, test, outcome=None, text=""):
        seconds = time.monotonic() - self.started
        case = ElementTree.SubElement(self.root, "testcase", name=str(test), time=f"{seconds:.3f}")
        if outcome:
            ElementTree.SubElement(case, outcome).text = "".join(
                c if c.isprintable() or c in "\n\t" else "?" for c in text)
        if outcome in ("failure", "error"):
            print(f"FAILED: {test}\n{text}")
        elif seconds > SLOW_SECONDS:
            print(f"{test}: {seconds:.0f} s")


def main(report_path, folders):
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    report = Report()
    for folder in folders:
        unittest.TestLoader().discover(folder, "*_test.py", top_level_dir=folder).run(report)
    ElementTree.ElementTree(report.root).write(report_path)
    print(f"{', '.join(folders)}: {report.testsRun} cases in {pathlib.Path(report_path).name}")
    return 0 if report.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
