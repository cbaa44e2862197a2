# SPDX-License-Identifier: Apache-2.0
"""Turns the output of "go test -json" into a JUnit file.

    go test -json ./... | python3 bindings/go/junit.py FILE.xml

Tests with subtests are counted by those, and by themselves only if they failed alone. A test that
began and never ended, and a package that failed without one, are failures. What failed is printed,
and every line that a test says about the stress run. Exit code 0 only if all passed.
"""
import json
import re
import sys
import xml.etree.ElementTree as ElementTree

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REASON = re.compile(r"^\s*\w+\.go:\d+: (.*)$", re.MULTILINE)


class Case:
    """What became of one test, or with an empty name of a package."""

    def __init__(self, package, name):
        self.package = package
        self.name = name
        self.status = "fail"
        self.seconds = 0.0
        self.output = ""


def read(lines):
    """{(package, name): Case} of the events; other text belongs to no test, and is printed."""
    cases = {}
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            print(line, end="")
            continue
        if event.get("Action") in ("build-output", "build-fail"):
            print(event.get("Output", ""), end="")
            continue
        key = (event.get("Package", ""), event.get("Test", ""))
        case = cases.setdefault(key, Case(*key))
        if event["Action"] == "output":
            case.output += event["Output"]
        elif event["Action"] in ("pass", "fail", "skip"):
            case.status = event["Action"]
            case.seconds = event.get("Elapsed", 0.0)
    return cases


def counted(cases):
    """Those to report: see above."""
    for (package, name), case in cases.items():
        below = [other for (place, other_name), other in cases.items()
                 if place == package and other is not case and other_name
                 and other_name.startswith(name + "/" if name else "")]
        if name and not below:
            yield case
        elif case.status == "fail" and all(other.status != "fail" for other in below):
            yield case


def element_of(case):
    element = ElementTree.Element("testcase", classname=case.package.rsplit("/", 1)[-1],
                                  name=case.name or "package", time=f"{case.seconds:.3f}")
    output = NOT_XML.sub("?", case.output)
    if case.status == "fail":
        ElementTree.SubElement(element, "failure", message="failed").text = output
    elif case.status == "skip":
        reasons = REASON.findall(output)
        ElementTree.SubElement(element, "skipped").text = " ".join(reasons)
    return element


def main(path):
    cases = list(counted(read(sys.stdin)))
    suite = ElementTree.Element("testsuite", name="go", tests=str(len(cases)))
    for case in cases:
        suite.append(element_of(case))
        if case.status == "fail":
            print(f"FAILED: {case.name or case.package}\n{case.output}")
        for line in re.findall(r"stress: .*", case.output):
            print(line)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    failed = sum(case.status == "fail" for case in cases)
    skipped = sum(case.status == "skip" for case in cases)
    print(f"{len(cases) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 0 if len(cases) > failed + skipped and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
