# SPDX-License-Identifier: Apache-2.0
"""The program and a neighbour that takes memory, in one control group with a limit: the cache of
experts gives way before the kernel kills anybody, and comes back when the neighbour has gone.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import program

MIB = 1 << 20
LIMIT = 1200 * MIB
BUDGET = 1000 * MIB
SPEED = 100 * MIB  # what the neighbour takes in a second
CONTEXT = 1024
RUN = ("--raw", "--budget", BUDGET, "--context", CONTEXT, "--max-tokens", 900, "--temperature", 2,
       "--seed", 3)
# argv: bytes to take, bytes a second. Says when it has them, and keeps them until stdin ends.
NEIGHBOUR = """
import sys, time
want, speed, step = int(sys.argv[1]), int(sys.argv[2]), 1 << 20
held = []
start = time.monotonic()
while len(held) * step < want:
    held.append(bytearray(b"x") * step)
    time.sleep(max(0, start + len(held) * step / speed - time.monotonic()))
print("full", flush=True)
sys.stdin.read()
"""


class Group:
    """A new control group for memory, v1 or v2, below the root of the hierarchy."""

    def __init__(self, limit):
        root = pathlib.Path("/sys/fs/cgroup")
        v1 = (root / "memory/memory.limit_in_bytes").exists()
        parent = root / "memory" if v1 else root
        self.path = parent / f"waste-test-{os.getpid()}"
        if not v1 and "memory" not in (root / "cgroup.subtree_control").read_text():
            raise OSError("no memory controller below the root group")
        self.path.mkdir()
        self.limit = limit
        self.usage_name = "memory.usage_in_bytes" if v1 else "memory.current"
        self.oom_name = "memory.oom_control" if v1 else "memory.events"
        self.total = "total_" if v1 else ""
        try:
            limit_name = "memory.limit_in_bytes" if v1 else "memory.max"
            (self.path / limit_name).write_text(str(limit))
            if not v1:
                (self.path / "memory.swap.max").write_text("0")
        except OSError:
            self.path.rmdir()
            raise

    def enter(self):
        """For preexec_fn."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def number(self, file, name):
        for line in (self.path / file).read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
        return 0

    def left(self):
        """Memory that can still be had, file cache counted."""
        files = sum(self.number("memory.stat", self.total + name)
                    for name in ("active_file", "inactive_file"))
        return self.limit - int((self.path / self.usage_name).read_text()) + files

    def kills(self):
        return self.number(self.oom_name, "oom_kill")

    def remove(self):
        for _ in range(100):  # processes leave a moment after they were waited for
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.05)
        return self.path.rmdir()


def resident(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


class Elastic(program.ProgramTest):
    def setUp(self):
        try:
            self.group = Group(LIMIT)
        except OSError as error:
            self.skipTest(f"no control group with a limit of memory can be made here: {error}")
        self.addCleanup(self.group.remove)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, command):
        errors = open(self.folder / "errors", "wb")
        self.addCleanup(errors.close)
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=errors,
                                   preexec_fn=self.group.enter)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition, what, timeout_s=60):
        end = time.monotonic() + timeout_s
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}: not within {timeout_s} s")
            time.sleep(0.01)

    def test_the_cache_gives_way_to_a_neighbour_and_comes_back(self):
        model = self.folder / "model.waste"
        self.assert_ok(program.run("synth", "kimi-linear-48b", model, "--layers", 2,
                                   "--experts", 128))
        waste = self.start([program.WASTE, "run", model, "abc", *RUN])
        plan = self.json_of("plan", model, "--budget", BUDGET, "--context", CONTEXT)
        trunk, cache = plan["trunk_bytes"], plan["cache_bytes"]
        self.wait_until(lambda: resident(waste) > trunk + cache, "a cache that is full")
        # Without giving way, both would be above the limit by half of what the cache holds.
        most = resident(waste)
        want = LIMIT - most + cache // 2
        neighbour = self.start([sys.executable, "-c", NEIGHBOUR, want, SPEED])
        self.wait_until(lambda: self.group.left() < LIMIT // 16, "pressure")
        began = time.monotonic()
        most = max(most, resident(waste))  # it may have grown until then
        self.wait_until(lambda: resident(waste) < most - cache // 8, "memory given back")
        self.assertIsNone(waste.poll(), "killed")
        took = time.monotonic() - began
        print(f"elastic: {(most - resident(waste)) // MIB} MiB given back after {took:.2f} s")
        self.assertLess(took, 5)  # a second, and what a loaded machine adds
        self.assertEqual(neighbour.stdout.readline(), b"full\n")
        self.assertIsNone(waste.poll())
        self.assertEqual(self.group.kills(), 0)
        least = resident(waste)
        neighbour.communicate()  # its stdin ends, and it goes
        self.wait_until(lambda: resident(waste) > least + cache // 8, "growth")
        waste.send_signal(signal.SIGINT)
        text = waste.communicate(timeout=program.TIMEOUT_S)[0]
        self.assertEqual(waste.returncode, program.INTERRUPTED)
        self.assert_prefix(text, model)

    def assert_prefix(self, text, model):
        """Without a limit the same text comes out. What was cut is its end."""
        calm = subprocess.Popen([program.WASTE, "run", str(model), "abc", *map(str, RUN)],
                                stdout=subprocess.PIPE)
        self.addCleanup(calm.communicate)
        self.addCleanup(calm.kill)
        text = text.rstrip(b"\n")
        self.assertGreater(len(text), 100)
        expected = calm.stdout.read(len(text))
        self.assertEqual(expected, text)


if __name__ == "__main__":
    unittest.main()
