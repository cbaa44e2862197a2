# SPDX-License-Identifier: Apache-2.0
"""Prints one line a runtime from the JUnit files bindings.RUNTIME.*.xml of a folder.

    python3 bindings/conformance/table.py FOLDER

    java-17    118 passed, 0 failed

Exit code 0 only if every runtime passed something and failed nothing; skipped cases are counted
where there are some.
"""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
import summary  # noqa: E402  (the folder above must be known first)

RUNTIME = re.compile(r"bindings\.(\w+(?:-\d+(?:\.\d+)?|-\w+)*)\.")  # "go-1.19" has a dot of its own


def counts_of(folder):
    """{runtime: Counter of statuses}, in the order of the files' names."""
    runtimes = collections.defaultdict(collections.Counter)
    for path in sorted(pathlib.Path(folder).glob("bindings.*.xml")):
        runtime = RUNTIME.match(path.name).group(1)
        runtimes[runtime].update(status for _, status, _ in summary.read_cases(path))
    return runtimes


def main(folder):
    runtimes = counts_of(folder)
    for runtime, counts in runtimes.items():
        skipped = f", {counts[summary.SKIPPED]} skipped" if counts[summary.SKIPPED] else ""
        print(f"{runtime:14} {counts[summary.PASSED]} passed, {counts[summary.FAILED]} failed"
              f"{skipped}")
    good = all(not counts[summary.FAILED] and sum(counts.values()) for counts in runtimes.values())
    return 0 if runtimes and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
