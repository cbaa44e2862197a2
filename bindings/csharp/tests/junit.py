# SPDX-License-Identifier: Apache-2.0
"""Turns the report of NUnit 2.6 into a JUnit file: junit.py NUNIT.xml JUNIT.xml"""
import sys
import xml.etree.ElementTree as ElementTree


def convert(report):
    suite = ElementTree.Element("testsuite", name="bindings")
    for case in report.iter("test-case"):
        # "Waste.Tests.Fixture.Case"; a case of a source has just its own name.
        classname, _, name = case.get("name").rpartition(".")
        made = ElementTree.SubElement(suite, "testcase", classname=classname.split(".")[-1],
                                      name=name, time=case.get("time", "0"))
        message = case.findtext(".//message") or case.findtext("reason/message") or ""
        if case.get("executed") != "True":
            ElementTree.SubElement(made, "skipped").text = message
        elif case.get("success") != "True":
            trace = case.findtext(".//stack-trace") or ""
            ElementTree.SubElement(made, "failure").text = f"{message}\n{trace}"
    return suite


def main(source, target):
    suite = convert(ElementTree.parse(source).getroot())
    ElementTree.ElementTree(suite).write(target, encoding="utf-8", xml_declaration=True)
    failed = suite.findall("testcase/failure")
    print(f"{len(suite)} tests, {len(failed)} failed")
    for case in suite:
        if case.find("failure") is not None:
            print(f"FAILED: {case.get('classname')}.{case.get('name')}\n"
                  f"{case.findtext('failure')}")
    return 1 if failed or not len(suite) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
