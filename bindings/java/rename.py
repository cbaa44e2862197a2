# SPDX-License-Identifier: Apache-2.0
"""Gives the cases of a JUnit report of the console launcher the names that their tests gave them,
and those that were skipped their reason without the stack.

    python3 bindings/java/rename.py REPORT OUT

The launcher names a dynamic test after its method and a number, and has its display name in what it
calls the output of the case.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def main(report, out):
    tree = ElementTree.parse(report)
    for case in tree.getroot().iter("testcase"):
        text = "".join(output.text or "" for output in case.iter("system-out"))
        shown = re.search(r"^display-name: (\w+)", text, re.MULTILINE)
        case.set("name", shown.group(1) if shown else case.get("name"))
        for skipped in case.iter("skipped"):
            skipped.text = (skipped.text or "").split("\n")[0].split("Assumption failed: ")[-1]
    tree.write(out, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
