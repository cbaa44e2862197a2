# SPDX-License-Identifier: Apache-2.0
"""What the parts of run.py share: programs that are run and told about, the machine, and figures as
text. Errors end the script with a sentence that says what to do.
"""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
WASTE = BUILD / "waste"
START = time.monotonic()


def elapsed():
    return time.monotonic() - START


def progress(text):
    print(f"[{elapsed():4.0f} s] {text}", file=sys.stderr, flush=True)


def run(*command, quiet=True):
    """The output of a program; what it says to stderr is passed on unless `quiet`."""
    if not pathlib.Path(command[0]).exists():
        sys.exit(f"{command[0]} is not there: install libbenchmark-dev, and build the preset "
                 "release with -DWASTE_TESTS=ON")
    ended = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE if quiet else None)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(str(part) for part in command)} failed: "
                 f"{(ended.stderr or '').strip()}")
    return ended.stdout


def run_json(path, *command, quiet=True):
    """The same for programs that print JSON, which is kept in the file `path`."""
    text = run(*command, quiet=quiet)
    path.write_text(text)
    return json.loads(text)


def value_of(path, name):
    """What stands behind "name:" in a file of /proc; empty where there is none."""
    try:
        for line in pathlib.Path(path).read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    except OSError:
        pass
    return ""


def machine():
    cpu = value_of("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    kibibytes = value_of("/proc/meminfo", "MemTotal").split(" ")[0]
    memory = f", {size_text(int(kibibytes) << 10)} of memory" if kibibytes else ""
    return f"{cpu}, {os.cpu_count()} cores{memory}, {platform.system()}"


def size_text(size):
    return f"{size / 2**30:.3g} GiB" if size >= 2**30 else f"{size / 2**20:.3g} MiB"


def figure(value):
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def median_text(values):
    """Median and spread, or the one value that there is."""
    middle = figure(statistics.median(values))
    if len(values) == 1:
        return f"{middle} (once)"
    return f"{middle} ({figure(min(values))} to {figure(max(values))})"
