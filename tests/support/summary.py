# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of JUnit files.

    python3 tests/support/summary.py FOLDER

Names every failed and skipped case and ends with the line "N passed, M failed, K skipped". A file
that is no whole XML (a program that died while it wrote) is one failure. Exit code 0 only if
something passed and nothing failed.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def status_of(case):
    """The status of one <testcase>."""
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    return SKIPPED if case.find("skipped") is not None else PASSED


def reason_of(case):
    """Why a case was skipped, or an empty text. Boost writes it into what it lets out."""
    skipped = case.find("skipped")
    if skipped is None:
        return ""
    output = re.search(r"reason: '(.*)'", case.findtext("system-out") or "")
    return output.group(1) if output else (skipped.text or "").strip()


def name_of(case):
    return ".".join(part for part in (case.get("classname"), case.get("name")) if part)


def was_asked_for(case):
    """Boost also reports the cases that a filter of its command line left out."""
    return reason_of(case) != "disabled"


def read_cases(path):
    """[(name, status, reason)] of one JUnit file."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        return [(f"{path.name}: no whole report ({error})", FAILED, "")]
    return [(f"{path.stem}: {name_of(case)}", status_of(case), reason_of(case))
            for case in root.iter("testcase") if was_asked_for(case)]


def main(folder):
    counts = {PASSED: 0, FAILED: 0, SKIPPED: 0}
    for path in sorted(pathlib.Path(folder).glob("*.xml")):
        for name, status, reason in read_cases(path):
            counts[status] += 1
            if status != PASSED:
                print(f"{status}: {name}{': ' + reason if reason else ''}")
    print(", ".join(f"{counts[status]} {status}" for status in (PASSED, FAILED, SKIPPED)))
    return 0 if counts[PASSED] and not counts[FAILED] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
