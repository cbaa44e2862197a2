# SPDX-License-Identifier: Apache-2.0
"""Plays a person at a terminal: terminal.py PROGRAM ARGUMENT...

Asks, waits for text, presses Ctrl-C, waits until the answer is cancelled and the prompt is back,
then ends the input. Exit code 0 if the program ended well.
"""
import os
import pty
import select
import sys
import time

PATIENCE = 30


class Terminal:
    """What a person sees of a program, and types."""

    def __init__(self, program):
        self.child, self.file = pty.fork()
        if self.child == 0:
            os.execv(program[0], program)
        self.unread = b""

    def expect(self, wanted):
        end = time.monotonic() + PATIENCE
        while wanted not in self.unread:
            if not select.select([self.file], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{wanted} did not come; shown since: {self.unread}")
            self.unread += os.read(self.file, 4096)
        self.unread = self.unread.split(wanted, 1)[1]

    def press(self, keys):
        os.write(self.file, keys)

    def wait(self):
        try:
            while os.read(self.file, 4096):
                pass
        except OSError:
            pass  # The program has closed its end.
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def main(program):
    terminal = Terminal(program)
    terminal.expect(b"> ")
    for _ in range(2):
        terminal.press(b"x\n")
        terminal.expect(b"haha")
        terminal.press(b"\x03")
        terminal.expect(b"[cancelled]")
        terminal.expect(b"> ")
    terminal.press(b"\x04")
    status = terminal.wait()
    print("cancelled twice, then ended with", status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
