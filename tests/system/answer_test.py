# SPDX-License-Identifier: Apache-2.0
"""`waste run` on scripted models: streams, ends, errors, interruption."""
import os
import pathlib
import signal
import subprocess
import time
import unittest

import program
from program import Terminal, run, start

KEYS = {"text", "thinking", "tool", "tokens", "prompt_tokens", "finish_reason", "seed",
        "prefill_tok_s", "decode_tok_s", "prefill_us", "decode_us", "experts_hit", "experts_missed",
        "experts_foreseen", "speculative_bytes", "read_stalls",
        "bytes_read", "read_us", "direct_io", "budget_bytes", "peak_rss_bytes"}
LATENCY_S = 1.0  # from a Ctrl-C to the end of the program, on a busy machine


class Answers(program.ScriptTest):
    def test_the_answer_and_only_the_answer_is_on_stdout(self):
        result = run("run", self.script(["Hel", "lo ", {"bytes": "f09f"}, {"bytes": "9880"}]), "Hi")
        self.assert_ok(result)
        self.assertEqual(result.stdout.decode(), "Hello \U0001f600\n")
        self.assertEqual(result.stderr, b"")

    def test_json_has_the_documented_keys(self):
        answer = self.json_of("run", self.script(["Hel", "lo"]), "Hi")
        self.assertEqual(set(answer), KEYS)
        self.assertEqual(answer["text"], "Hello")
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertGreater(answer["prompt_tokens"], 0)
        self.assertTrue(all(isinstance(token, int) for token in answer["tokens"]))

    def test_max_tokens_ends_an_endless_answer(self):
        answer = self.json_of("run", self.script([{"repeat": "ha"}]), "Hi", "--max-tokens", 5)
        self.assertEqual((answer["text"], answer["finish_reason"]), ("ha" * 5, "length"))
        self.assertEqual(len(answer["tokens"]), 5)

    def test_a_stop_text_is_not_part_of_the_answer(self):
        script = self.script(["one", ", tw", "o, th", "ree"])
        answer = self.json_of("run", script, "Count", "--stop", "xyz", "--stop", "two")
        self.assertEqual((answer["text"], answer["finish_reason"]), ("one, ", "stop"))

    def test_a_step_runs_on_the_cpus_asked_for(self):
        granted = sorted(os.sched_getaffinity(0))
        if len(granted) < 2:
            self.skipTest(f"the system grants {len(granted)} CPU, and 2 are needed")
        script = self.script([{"stall_ms": 60000}, "never"])
        process = start("run", script, "Hi", "--cpus", granted[-1])
        end = time.monotonic() + program.TIMEOUT_S
        while os.sched_getaffinity(process.pid) != {granted[-1]} and time.monotonic() < end:
            time.sleep(0.01)
        place = os.sched_getaffinity(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=program.TIMEOUT_S)
        self.assertEqual(place, {granted[-1]})
        self.assertEqual(process.returncode, program.INTERRUPTED)

    def test_logprobs_are_one_a_token(self):
        answer = self.json_of("run", self.script(["a", "b"]), "Hi", "--logprobs")
        self.assertEqual(len(answer["logprobs"]), len(answer["tokens"]))
        self.assertTrue(all(value <= 0 for value in answer["logprobs"]))

    def test_a_seed_is_told_and_differs_when_tokens_are_drawn(self):
        script = self.script(["a"])
        seeds = {self.json_of("run", script, "Hi", "--temperature", 1)["seed"] for _ in range(3)}
        self.assertEqual(len(seeds), 3)
        self.assertEqual(self.json_of("run", script, "Hi", "--seed", -7)["seed"], -7)

    def test_the_prompt_may_come_from_stdin_or_begin_with_a_dash(self):
        script = self.script(["ok"])
        self.assertEqual(self.json_of("run", script, "-", stdin=b"Hi")["text"], "ok")
        result = run("run", script, "--json", "--", "-5 + 3 =")
        self.assert_ok(result)

    def test_a_failing_read_ends_with_its_message(self):
        script = self.script(["Hel", {"error": "IO", "message": "bank 3", "times": 99}, "lo"])
        self.assert_error(run("run", script, "Hi", "--json"), "IO", program.FAILED, "bank 3")
        result = run("run", script, "Hi")
        self.assertEqual(result.returncode, program.FAILED)
        self.assertEqual(result.stdout, b"Hel\n")
        self.assertIn(b"bank 3", result.stderr)

    def test_a_model_that_does_not_open_is_named(self):
        for path in ("no-such-model.waste", "test:no-such-script.json"):
            with self.subTest(path=path):
                self.assert_error(run("run", path, "Hi", "--json"), "IO", program.FAILED, "no-such")

    def test_a_budget_below_the_floor_tells_what_is_needed(self):
        script = self.script(["a"], floor_bytes=1 << 24)
        error = self.assert_error(run("run", script, "Hi", "--json", "--budget", "1M"),
                                  "RAM_BUDGET", program.FAILED)
        self.assertGreaterEqual(error["needed_bytes"], 1 << 24)
        self.json_of("run", script, "Hi", "--budget", error["needed_bytes"])
        self.assertIn(str(error["needed_bytes"]).encode(),
                      run("run", script, "Hi", "--budget", "1M").stderr)

    def test_a_prompt_over_the_context_is_refused(self):
        script = self.script(["a"], context=64)
        self.assert_error(run("run", script, "x" * 500, "--json"), "CONTEXT_FULL", program.FAILED)

    def test_a_prompt_that_is_no_utf8_is_refused_with_its_offset(self):
        result = run("run", self.script(["a"]), "-", "--json", stdin=b"abc\xff")
        self.assert_error(result, "ARGUMENT", program.FAILED, "3")


class Interruption(program.ScriptTest):
    def interrupt(self, *arguments):
        """(seconds to the end, exit code, stdout) of a run that is stopped in the middle."""
        process = start("run", *arguments)
        time.sleep(0.5)
        seconds = program.seconds_to_end(process)
        stdout, stderr = process.communicate()
        self.assertNotIn(b"rror", stderr)
        return seconds, process.returncode, stdout

    def test_an_endless_answer_stops_although_nobody_reads_it(self):
        seconds, code, stdout = self.interrupt(self.script([{"repeat": "ha"}], context=100000000),
                                               "Hi")
        self.assertEqual(code, program.INTERRUPTED)
        self.assertLess(seconds, LATENCY_S)
        self.assertTrue(stdout.startswith(b"haha"))

    def test_a_stalled_answer_stops(self):
        script = self.script(["one", {"stall_ms": 60000}, "two"])
        seconds, code, stdout = self.interrupt(script, "Hi")
        self.assertEqual((code, stdout), (program.INTERRUPTED, b"one\n"))
        self.assertLess(seconds, LATENCY_S)

    def test_with_json_the_object_is_written_all_the_same(self):
        script = self.script(["one", {"stall_ms": 60000}, "two"])
        _, code, stdout = self.interrupt(script, "Hi", "--json")
        answer = self.one_object(stdout)
        self.assertEqual(code, program.INTERRUPTED)
        self.assertEqual((answer["text"], answer["finish_reason"]), ("one", "cancelled"))

    def test_a_stalled_prompt_and_a_stalled_open_stop(self):
        for setting in ("prefill_stall_ms", "open_stall_ms"):
            with self.subTest(setting=setting):
                script = self.script(["one"], **{setting: 60000})
                seconds, code, _ = self.interrupt(script, "Hi")
                self.assertEqual(code, program.INTERRUPTED)
                self.assertLess(seconds, LATENCY_S)


class Streams(program.ScriptTest):
    def test_pieces_come_as_they_are_made(self):
        process = start("run", self.script(["first ", {"stall_ms": 60000}, "second"]), "Hi")
        self.assertEqual(os.read(process.stdout.fileno(), 100), b"first ")
        process.kill()
        process.communicate()

    def test_a_reader_that_leaves_ends_the_program_without_a_word(self):
        script = self.script([{"repeat": "ha"}], context=100000000)
        shell = subprocess.run(
            ["bash", "-c", '"$0" run "$1" Hi | head -c 1; echo " ${PIPESTATUS[0]}"',
             program.WASTE, script], capture_output=True, timeout=program.TIMEOUT_S, check=False)
        self.assertEqual(shell.stdout.decode().split(), ["h", str(128 + signal.SIGPIPE)])
        self.assertEqual(shell.stderr, b"")

    @unittest.skipUnless(pathlib.Path("/dev/full").exists(), "no /dev/full")
    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([program.WASTE, "run", self.script(["a"]), "Hi"], stdout=full,
                                    stderr=subprocess.PIPE, timeout=program.TIMEOUT_S, check=False)
        self.assertEqual(result.returncode, program.FAILED)
        self.assertIn(b"standard output", result.stderr)

    def test_a_slow_open_shows_progress_on_a_terminal_only(self):
        script = self.script(["ok"], open_stall_ms=1000)
        terminal = Terminal("run", script, "Hi")
        self.assertIn(b"Loading", terminal.read_until(b"Loading"))
        self.assertEqual(terminal.finish(), (program.OK, b"ok\n"))
        self.assertEqual(run("run", script, "Hi").stderr, b"")

    def test_a_model_does_not_steer_the_terminal(self):
        script = self.script(["a", {"bytes": "1b"}, "[2J", {"bytes": "c29b"}, "b"])
        terminal = Terminal("run", script, "Hi", with_stdout=True)
        terminal.finish()
        self.assertIn(b"a<1b>[2J<9b>b", terminal.seen)
        self.assertEqual(run("run", script, "Hi").stdout, b"a\x1b[2J\xc2\x9bb\n")


if __name__ == "__main__":
    unittest.main()
