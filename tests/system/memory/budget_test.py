# SPDX-License-Identifier: Apache-2.0
"""The memory that was planned is what a process takes, and what one model was promised another
does not plan with. Each measured process is one of its own: the peak is a process's.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import program
from program import MINI, run, start

SLACK = 64 << 20  # beside the budget: the program itself, its libraries and tokenizer
SENTENCES = "The capital of Italy is Rome. The chemical symbol of iron is Fe. "
PROMPT_TOKENS = 4096
CONTEXT = 4608
SESSIONS = str(pathlib.Path(program.WASTE).parent / "tests/sessions")
LONG_TIMEOUT_S = 600  # of what computes for seconds, on a busy machine
TRIES = 20  # others on this machine take and give memory meanwhile


class BudgetTest(program.ProgramTest):
    def output_of(self, arguments, stdin=b""):
        """The object that a program writes which may compute for long."""
        result = subprocess.run([*map(str, arguments)], input=stdin, capture_output=True,
                                timeout=LONG_TIMEOUT_S, check=False)
        self.assert_ok(result)
        return self.one_object(result.stdout)

    def assert_kept(self, figures, budget=None):
        if budget is not None:
            self.assertEqual(figures["budget_bytes"], budget)
        self.assertLessEqual(figures["peak_rss_bytes"], figures["budget_bytes"] + SLACK)

    def prompt(self, model):
        """A text of at least PROMPT_TOKENS tokens that fits CONTEXT."""
        text = SENTENCES * 16
        count = len(self.json_of("tokenize", model, stdin=text.encode())["tokens"])
        return (text * (PROMPT_TOKENS // count + 1)).encode()

    def prefill(self, model, *options):
        figures = self.output_of([program.WASTE, "run", model, "-", "--raw", "--max-tokens", 2,
                                  "--context", CONTEXT, "--json", *options], self.prompt(model))
        self.assertGreaterEqual(figures["prompt_tokens"], PROMPT_TOKENS)
        return figures

    def check_prefill_at_the_floor(self, model):
        floor = self.json_of("plan", model, "--context", CONTEXT)["floor_bytes"]
        self.assert_kept(self.prefill(model, "--budget", floor), floor)

    def check_eight_sessions(self, model, context, tokens):
        """All contexts are charged and used; the budget is the least that holds them."""
        plan = self.json_of("plan", model, "--context", context)
        budget = plan["floor_bytes"] + 7 * plan["state_bytes"]
        arguments = [SESSIONS, model, budget, context, 8, tokens]
        figures = self.output_of(arguments)
        self.assert_kept(figures, budget)
        self.assertLessEqual(figures["memory_bytes"], budget)
        arguments[2] = budget - 1
        refused = subprocess.run([*map(str, arguments)], capture_output=True,
                                 timeout=LONG_TIMEOUT_S, check=False)
        self.assertEqual(refused.returncode, program.FAILED)
        self.assertIn(f"grant {budget}".encode(), refused.stderr)

    def check_automatic(self, model):
        plan = self.json_of("plan", model)
        figures = self.json_of("run", model, "Hello", "--raw", "--max-tokens", 16)
        self.assertGreater(figures["budget_bytes"], plan["floor_bytes"])
        self.assert_kept(figures)


class Mini(BudgetTest):
    def test_a_long_prompt_stays_within_the_floor(self):
        self.check_prefill_at_the_floor(MINI)

    def test_eight_sessions_stay_within_their_charge(self):
        self.check_eight_sessions(MINI, 512, 500)

    def test_an_automatic_budget_is_kept(self):
        self.check_automatic(MINI)

    def test_eight_sessions_of_an_automatic_budget_stay_within_what_they_are_charged(self):
        figures = self.output_of([SESSIONS, MINI, 0, 4096, 8, 64])
        self.assertGreater(figures["memory_bytes"], figures["budget_bytes"])
        self.assertLessEqual(figures["peak_rss_bytes"], figures["memory_bytes"] + SLACK)


class TrueWidth(BudgetTest):
    """Kimi-Linear's matrices at their sizes, where a second copy of any would show."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = os.path.join(cls.folder.name, "wide.waste")
        subprocess.run([program.WASTE, "synth", "kimi-linear-48b", cls.model, "--layers", "2",
                        "--experts", "32"], check=True, capture_output=True,
                       timeout=LONG_TIMEOUT_S)

    def test_a_long_prompt_stays_within_the_floor(self):
        self.check_prefill_at_the_floor(self.model)

    def test_eight_sessions_stay_within_their_charge(self):
        self.check_eight_sessions(self.model, 128, 120)

    def test_an_automatic_budget_is_kept(self):
        self.check_automatic(self.model)

    def test_sessions_keep_an_automatic_budget_while_the_cache_can_make_room(self):
        figures = self.output_of([SESSIONS, self.model, 0, 256, 4, 200])
        self.assertEqual(figures["memory_bytes"], figures["budget_bytes"])
        self.assert_kept(figures)


class Plans(program.ScriptTest):
    def test_a_budget_may_be_plain_bytes_or_have_a_unit(self):
        """All are far above the mini model's floor, which is not what is asked here."""
        for text, size in (("90000000", 90000000), ("90000000B", 90000000), ("90M", 90 << 20),
                           ("90MiB", 90 << 20), ("0.5G", 1 << 29), ("90000K", 90000 << 10)):
            with self.subTest(budget=text):
                plan = self.json_of("plan", MINI, "--budget", text)
                self.assertEqual(plan["budget_bytes"], size)
                self.assertLessEqual(plan["floor_bytes"] + plan["cache_bytes"], size)

    def test_a_budget_beyond_the_machine_is_taken_and_said(self):
        script = self.script(["ok"])
        result = run("run", script, "Hi", "--budget", "4000T")
        self.assert_ok(result)
        self.assertEqual(result.stdout, b"ok\n")
        self.assertIn(b"more than", result.stderr)
        self.assertIn(str(4000 << 40).encode(), result.stderr)
        self.assertEqual(run("run", script, "Hi", "--budget", "1M").stderr, b"")


class Reservations(program.ScriptTest):
    """Two real processes. A script takes no memory however high its floor, so it can be promised a
    share of this machine that nothing else which happens on it hides."""

    def usable(self):
        return self.json_of("plan", MINI)["usable_bytes"]

    def hold(self, size):
        """A process that has opened a model of `size` bytes."""
        process = start("chat", self.script([{"repeat": "a"}], floor_bytes=size), "--json",
                        "--max-tokens", "1")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stdin.write(b"Hi\n")
        process.stdin.flush()
        self.assertIn("text", json.loads(process.stdout.readline()))
        return process

    def assert_counts_until(self, end):
        """What another process may use shrinks by a held model, until `end` ends its process."""
        share = self.usable() // 4
        differences = []
        for _ in range(TRIES):
            before = self.usable()
            process = self.hold(share)
            during = self.usable()
            end(process)
            process.communicate(timeout=program.TIMEOUT_S)
            after = self.usable()
            differences.append((before - during, after - during))
            if min(differences[-1]) > share // 2:
                return
        self.fail(f"{share} bytes were reserved, and usable bytes changed by {differences}")

    def test_another_process_plans_with_less_while_a_model_is_open(self):
        self.assert_counts_until(lambda process: None)  # its input ends, and so does it

    def test_a_killed_process_reserves_nothing(self):
        self.assert_counts_until(subprocess.Popen.kill)


if __name__ == "__main__":
    unittest.main()
