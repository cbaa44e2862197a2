# SPDX-License-Identifier: Apache-2.0
"""Turns the event stream of swift-testing into a JUnit file in which every case of a parameterised
test is a testcase of its own (swift-testing's own XML has one for all of them).

    python3 bindings/swift/junit.py EVENTS OUTPUT

EVENTS has one JSON record a line (--event-stream-output-path). A run that died before its end is a
failed case that names what ran last. Exit code 0 only if the run ended and nothing failed.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def read_events(path):
    """The records; a last line that was cut by a crash is left out."""
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


class Report:
    """Collects the cases of one run, in the order in which they started."""

    def __init__(self):
        self.functions = {}  # id of a test function: its record
        self.cases = {}  # (id, case): [messages of failures]
        self.started = {}
        self.seconds = {}
        self.skipped = {}  # id: reason
        self.ended = False

    def add(self, record):
        payload = record["payload"]
        if record["kind"] == "test":
            if payload["kind"] == "function":
                self.functions[payload["id"]] = payload
            return
        test = self.functions.get(payload.get("testID"))
        self.ended = self.ended or payload["kind"] == "runEnded"
        if test is None:
            if payload["kind"] == "issueRecorded":
                self.cases.setdefault(("", ""), []).append(self.text(payload))
            return
        self.add_event(test, payload)

    def add_event(self, test, payload):
        kind = payload["kind"]
        named = payload.get("_testCase", {}) if test["isParameterized"] else {}
        case = named.get("displayName", "")
        key = (test["id"], case)
        starts = "testCaseStarted" if test["isParameterized"] else "testStarted"
        if kind == starts:
            self.cases.setdefault(key, [])
            self.started[key] = payload["instant"]["absolute"]
        elif kind == starts.replace("Started", "Ended") and key in self.started:
            self.seconds[key] = payload["instant"]["absolute"] - self.started[key]
        elif kind == "testSkipped":
            self.skipped[test["id"]] = " ".join(payload.get("_comments") or [self.text(payload)])
            self.cases.setdefault((test["id"], ""), [])
        elif kind == "issueRecorded" and not payload["issue"].get("isKnown"):
            self.cases.setdefault(key, []).append(self.text(payload))

    @staticmethod
    def text(payload):
        where = payload.get("issue", {}).get("sourceLocation") or {}
        place = f"{where.get('fileID', '')}:{where.get('line', '')}: " if where else ""
        return place + "\n".join(message["text"] for message in payload["messages"])

    def name_of(self, key):
        test = self.functions.get(key[0])
        if test is None:
            return "outside of a test", ""
        name = test.get("displayName") or test["name"].split("(")[0]
        return f"{name}[{key[1]}]" if key[1] else name, test["id"].split("/")[1]

    def xml(self):
        suite = ElementTree.Element("testsuite", name="swift")
        for key, failures in self.cases.items():
            name, suite_name = self.name_of(key)
            case = ElementTree.SubElement(suite, "testcase", classname=suite_name, name=name,
                                          time=f"{self.seconds.get(key, 0):.3f}")
            if failures:
                failure = ElementTree.SubElement(case, "failure", message=failures[0])
                failure.text = "\n".join(failures)
            elif key[0] in self.skipped:
                ElementTree.SubElement(case, "skipped").text = self.skipped[key[0]]
        if not self.ended:
            last = [self.name_of(key)[0] for key in self.started if key not in self.seconds]
            case = ElementTree.SubElement(suite, "testcase", name="the whole run")
            ElementTree.SubElement(case, "failure",
                                   message=f"the run died in {', '.join(last) or 'its start'}")
        return suite

    def good(self):
        return self.ended and any(self.seconds) and not any(self.cases.values())


def main(events, output):
    report = Report()
    for record in read_events(pathlib.Path(events)):
        report.add(record)
    suite = report.xml()
    text = ElementTree.tostring(suite, encoding="unicode")
    # XML 1.0 has no such characters, not even escaped.
    text = "".join(c if c in "\t\n" or ord(c) >= 32 else "\ufffd" for c in text)
    pathlib.Path(output).write_text(text, encoding="utf-8")
    return 0 if report.good() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
