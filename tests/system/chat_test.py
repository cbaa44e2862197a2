# SPDX-License-Identifier: Apache-2.0
"""`waste chat` on scripted models: lines, commands, errors, and a terminal."""
import json
import subprocess
import unittest

import program
from program import Terminal, run


class Chat(program.ScriptTest):
    def test_each_line_is_a_message(self):
        result = run("chat", self.script(["one"], ["two"]), stdin=b"a\n\nb\n")
        self.assert_ok(result)
        self.assertEqual((result.stdout, result.stderr), (b"one\ntwo\n", b""))

    def test_json_is_a_line_for_each_message_and_command(self):
        result = run("chat", self.script(["one"], ["two"]), "--json",
                     stdin=b"a\n/stats\n/reset\nb\n")
        self.assert_ok(result)
        first, stats, reset, second = map(json.loads, result.stdout.splitlines())
        self.assertEqual((first["text"], second["text"]), ("one", "one"))
        self.assertGreater(stats["position"], first["prompt_tokens"])
        self.assertEqual(reset, {"done": "/reset"})
        self.assertEqual(second["prompt_tokens"], first["prompt_tokens"])

    def test_a_saved_conversation_goes_on(self):
        script = self.script(["one"], ["two"])
        saved = self.folder / "saved.state"
        commands = f"a\n/save {saved}\n/stats\n/reset\n/load {saved}\n/stats\n".encode()
        result = run("chat", script, "--json", stdin=commands)
        self.assert_ok(result)
        objects = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(objects[2]["position"], objects[5]["position"])

    def test_the_system_message_stays_after_a_reset(self):
        lines = run("chat", self.script(["one"]), "--json", "--system", "Be kind. " * 10,
                    stdin=b"a\n/reset\na\n").stdout.splitlines()
        first, _, second = map(json.loads, lines)
        self.assertEqual(first["prompt_tokens"], second["prompt_tokens"])
        self.assertGreater(first["prompt_tokens"], 20)

    def test_a_line_that_fails_is_told_and_the_next_one_works(self):
        script = self.script([{"error": "IO", "message": "bank 3", "times": 1}, "one"], ["two"])
        result = run("chat", script, stdin=b"a\nb\xff\n/what\nc\n")
        self.assertEqual(result.returncode, program.FAILED)
        for named in (b"bank 3", b"UTF-8", b"/what"):
            self.assertIn(named, result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 1)

    def test_two_slashes_begin_a_message(self):
        result = run("chat", self.script(["one"]), stdin=b"//home is a folder\n")
        self.assert_ok(result)
        self.assertEqual(result.stdout, b"one\n")

    def test_quit_and_the_end_of_the_input_leave(self):
        for stdin in (b"/quit\nnot read\n", b""):
            with self.subTest(stdin=stdin):
                result = run("chat", self.script(["one"]), stdin=stdin)
                self.assert_ok(result)
                self.assertEqual(result.stdout, b"")


class ChatOnATerminal(program.ScriptTest):
    def setUp(self):
        super().setUp()
        self.model = self.script(["one", {"stall_ms": 60000}, "more"])

    def test_ctrl_c_stops_the_answer_and_empties_a_line_and_never_leaves(self):
        terminal = Terminal("chat", self.model, with_stdout=True)
        terminal.read_until(b"> ")
        terminal.type(b"hello\n")
        terminal.read_until(b"one")
        terminal.type(b"\x03")
        self.assertIn(b"cancelled", terminal.read_until(b"cancelled"))
        terminal.type(b"\x03")  # at no answer, and at no line
        terminal.seen = b""
        terminal.read_until(b"> ")
        terminal.type(b"unfinished\x03again\n")
        self.assertIn(b"one", terminal.read_until(b"one"))
        self.assertNotIn(b"unfinishedagain", terminal.seen)
        terminal.type(b"\x03")
        terminal.read_until(b"cancelled")
        terminal.type(b"/quit\n")
        self.assertEqual(terminal.finish()[0], program.OK)

    def test_lines_are_edited_and_the_end_of_input_leaves(self):
        terminal = Terminal("chat", self.script(["one"]))
        terminal.read_until(b"> ")
        terminal.type("hellö".encode() + b"\x7f\x7fx\n")
        self.assertEqual(terminal.process.stdout.readline(), b"one\n")
        terminal.read_until(rb"stop\].*> ")  # before that, it is not yet a key of the editor
        for _ in range(10):  # nor is it while the terminal still changes its mode: then it is lost
            terminal.type(b"\x04")
            try:
                terminal.process.wait(timeout=3)
                break
            except subprocess.TimeoutExpired:
                pass
        self.assertEqual(terminal.finish(), (program.OK, b""))
        self.assertNotIn(b"rror", terminal.seen)


if __name__ == "__main__":
    unittest.main()
