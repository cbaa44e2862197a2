# SPDX-License-Identifier: Apache-2.0
"""Runs the waste program of build/release for the end-to-end tests: to its end, in the background,
or on a pseudo-terminal. WASTE_PROGRAM names another build of it.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WASTE = os.environ.get("WASTE_PROGRAM", str(ROOT / "build/release/waste"))
MINI = str(ROOT / "examples/mini/mini.waste")
COMMANDS = ("run", "chat", "eval", "tokenize", "detokenize", "plan", "info", "convert", "synth",
            "verify", "bench", "doctor", "version")
OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
TIMEOUT_S = 60


def run(*arguments, stdin=b"", **options):
    """The program run to its end: returncode, stdout and stderr as bytes."""
    return subprocess.run([WASTE, *map(str, arguments)], input=stdin, capture_output=True,
                          timeout=TIMEOUT_S, check=False, **options)


def start(*arguments, **options):
    """The program in the background, with pipes."""
    return subprocess.Popen([WASTE, *map(str, arguments)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def seconds_to_end(process):
    """How long it takes from a Ctrl-C to the end of the program."""
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=TIMEOUT_S)
    return time.monotonic() - begin


def copy_model(source, target):
    """A container as it was made: not with what earlier runs have learned."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("usage.waste"))


class Terminal:
    """The program with stdin, stderr and, if asked for, stdout on a pseudo-terminal."""

    def __init__(self, *arguments, with_stdout=False):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [WASTE, *map(str, arguments)], stdin=slave, stderr=slave,
            stdout=slave if with_stdout else subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))  # so that ^C is SIGINT
        os.close(slave)
        self.seen = b""

    def read_until(self, pattern, timeout_s=20):
        """Reads until `pattern` was seen or nothing more comes. Returns everything seen so far."""
        end = time.monotonic() + timeout_s
        while not re.search(pattern, self.seen, re.DOTALL) and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:  # the other side is closed
                    break
        return self.seen

    def type(self, text):
        os.write(self.master, text)

    def finish(self):
        """Waits for the end. Returns (exit code, the rest of stdout if it was a pipe)."""
        self.read_until(rb"(?!)")  # to the end, so that the program can write
        stdout, _ = self.process.communicate(timeout=TIMEOUT_S)
        os.close(self.master)
        return self.process.returncode, stdout


class ProgramTest(unittest.TestCase):
    """Assertions about how the program ended."""

    def assert_ok(self, result):
        self.assertEqual(result.returncode, OK, result.stderr.decode(errors="replace"))

    def json_of(self, *arguments, stdin=b""):
        """The one object that a successful command writes with --json."""
        result = run(*arguments, "--json", stdin=stdin)
        self.assert_ok(result)
        return self.one_object(result.stdout)

    def one_object(self, stdout):
        lines = stdout.decode().splitlines()
        self.assertEqual(len(lines), 1, stdout)
        return json.loads(lines[0])

    def assert_error(self, result, code_name, exit_code, *parts):
        """A failed command under --json: one error object whose message has all the parts."""
        self.assertEqual(result.returncode, exit_code, result.stdout + result.stderr)
        error = self.one_object(result.stdout)["error"]
        self.assertEqual(error["code"], code_name, error)
        for part in parts:
            self.assertIn(part, error["message"])
        return error


class ScriptTest(ProgramTest):
    """Tests on scripted models, in a folder of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def script(self, *answers, **settings):
        """The name of a model that gives these answers."""
        path = self.folder / f"script{len(list(self.folder.iterdir()))}.json"
        path.write_text(json.dumps({"answers": list(answers), **settings}))
        return f"test:{path}"
