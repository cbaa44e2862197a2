# SPDX-License-Identifier: Apache-2.0
"""`waste bench` and its picture, and `waste doctor`: that the figures agree with each other and
with what the system says. How large they are depends on the machine, and is not tested.
"""
import json
import os
import pathlib
import re
import tempfile
import xml.etree.ElementTree as ElementTree

import program
from program import MINI, run

BENCH = ("bench", MINI, "--prompt-tokens", 16, "--tokens", 4, "--repeats", 3)
SVG = "{http://www.w3.org/2000/svg}"


def figure(value):
    """As the program writes figures: three digits or more."""
    return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


class Picture(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name, "bench.svg")
        cls.path.write_text("old")
        result = run(*BENCH, "--svg", cls.path, "--json")
        cls.bench = json.loads(result.stdout)
        cls.text = cls.path.read_text()
        cls.root = ElementTree.fromstring(cls.text)

    def elements(self, kind, style=None):
        return [element for element in self.root.iter(SVG + kind)
                if style in (None, element.get("class"))]

    def test_it_shows_the_figures_of_the_json(self):
        bench = self.bench
        shown = "\n".join("".join(text.itertext()) for text in self.elements("text"))
        for phase in ("prefill", "decode"):
            speed, limit = bench[f"{phase}_tok_s"], bench[f"{phase}_limit_tok_s"]
            share = f"{100 * (speed / limit):.0f} %"
            self.assertIn(f"{figure(speed)} tok/s, {share} of {figure(limit)}", shown)
            self.assertIn(f"{100 * bench[phase]['hit_rate']:.0f} % (", shown)
            self.assertIn(str(bench[phase]["experts_hit"]), shown)
        for word in (bench["model"], bench["cpu"], bench["isa"], bench["date"], "mini.waste",
                     f"{bench['threads']} threads", f"{bench['repeats']} repeats"):
            self.assertIn(word, shown)
        self.assertIn(f"of {figure(bench['memory_limit_bytes_s'] / 1e9)}", shown)

    def test_bars_are_as_long_as_their_figures_and_begin_at_zero(self):
        bars = self.elements("rect", "bar")[1:]  # after the legend's
        bands = self.elements("rect", "band")[1:]
        self.assertEqual({bar.get("x") for bar in bars + bands}, {bars[0].get("x")})
        shares = [self.bench[f"{name}_share"]
                  for name in ("decode", "prefill", "disk", "memory", "prefill")]
        self.assertEqual((len(bars), len(bands)), (len(shares), len(shares)))
        for bar, band, share in zip(bars, bands, shares):
            ratio = float(bar.get("width")) / float(band.get("width"))
            self.assertAlmostEqual(ratio, share, delta=0.02 * max(1, share))
        dots = self.elements("circle")
        self.assertEqual(len(dots), 1 + 2 * self.bench["repeats"])  # the legend's, each repeat

    def test_it_needs_nothing_from_outside_and_runs_nothing(self):
        for word in ("<script", "href", "url("):
            self.assertNotIn(word, self.text)
        self.assertIn("prefers-color-scheme: dark", self.text)

    def test_no_text_runs_into_another_or_out_of_the_picture(self):
        width, height = float(self.root.get("width")), float(self.root.get("height"))
        boxes = [box_of(text) for text in self.elements("text")]
        for left, right, y, text in boxes:
            self.assertTrue(0 <= left and right <= width and 0 < y < height, text)
        for i, (left, right, y, text) in enumerate(boxes):
            for other_left, other_right, other_y, other in boxes[:i]:
                apart = right <= other_left or other_right <= left or abs(y - other_y) >= 11
                self.assertTrue(apart, f"{text!r} on {other!r}")

    def test_it_replaces_what_was_there_and_leaves_nothing_beside_it(self):
        self.assertEqual([path.name for path in self.path.parent.iterdir()], ["bench.svg"])

    def test_a_place_that_cannot_be_written_is_told_before_the_work(self):
        for path, reason in ((self.path.parent / "none" / "bench.svg", "folder"),
                             ("/dev/null", "regular"), (self.path.parent, "regular")):
            result = run("bench", MINI, "--repeats", 10000, "--svg", path, "--json")
            self.assert_error(result, "IO", program.FAILED, str(path), reason)

    def test_a_name_of_markup_is_text(self):
        model = self.path.parent / "a<b>&\"c.waste"
        model.symlink_to(MINI)
        self.addCleanup(model.unlink)
        path = self.path.parent / "other.svg"
        self.addCleanup(path.unlink)
        self.assert_ok(run("bench", model, *BENCH[2:], "--svg", path))
        title = ElementTree.parse(path).getroot().find(SVG + "title")
        self.assertIn("a<b>&\"c.waste", title.text)


def bytes_of(amount):
    """Of "2.9 MB"."""
    number, unit = amount.split()
    return float(number) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def box_of(text):
    """(left, right, baseline, text) with a generous width of letters."""
    letters = "".join(text.itertext())
    style = text.get("class")
    width = len(letters) * (9.3 if style == "title" else 6.3)
    x = float(text.get("x"))
    left = x - width if "right" in style else x - width / 2 if "middle" in style else x
    return left, left + width, float(text.get("y")), letters


class Scripted(program.ScriptTest):
    def test_a_model_without_weights_has_no_limits(self):
        model = self.script([{"repeat": "hi", "times": 4}])
        bench = self.json_of("bench", model, *BENCH[2:], "--svg", self.folder / "bench.svg")
        self.assertEqual(bench["decode_limit_tok_s"], 0)
        self.assertIsNone(bench["decode"]["hit_rate"])
        self.assertIn("no experts used", (self.folder / "bench.svg").read_text())
        self.assertEqual(run("bench", model, *BENCH[2:]).returncode, program.OK)
        self.assert_error(run("doctor", model, "--json"), "UNSUPPORTED", program.FAILED, "weights")


class Bench(program.ProgramTest):
    def test_the_shares_are_those_of_the_limits(self):
        bench = self.json_of(*BENCH)
        for part in ("decode_{}tok_s", "prefill_{}tok_s", "disk_{}bytes_s", "memory_{}bytes_s"):
            share = bench[part.split("_")[0] + "_share"]
            self.assertAlmostEqual(share, bench[part.format("")] / bench[part.format("limit_")])
        for phase in ("prefill", "decode"):
            rates = bench[phase]["hit_rate_all"]
            self.assertEqual(len(rates), 3)
            self.assertTrue(min(rates) <= bench[phase]["hit_rate"] <= max(rates))

    def test_at_the_floor_experts_are_read_and_the_drive_is_busy(self):
        floor = self.json_of("plan", MINI)["floor_bytes"]
        bench = self.json_of(*BENCH, "--budget", floor)
        self.assertGreater(bench["experts_missed"], 0)
        self.assertGreater(bench["disk_bytes_s"], 0)
        self.assertLess(bench["decode"]["hit_rate"], 1)

    def test_sessions_that_write_at_once_are_told_beside_the_one(self):
        bench = self.json_of(*BENCH, "--sessions", 3, "--context", 256)
        together = bench["together"]
        self.assertEqual((together["sessions"], together["tokens"]), (3, 3 * 4))
        self.assertAlmostEqual(together["gain"], together["tok_s"] / bench["decode_tok_s"])
        self.assertEqual(len(together["session_tok_s"]), 3)
        self.assertEqual(len(together["tok_s_all"]), bench["repeats"])
        # All have ended when the last one has.
        self.assertGreaterEqual(1.001 * min(together["session_tok_s"]), together["tok_s"] / 3)
        self.assertNotIn("together", self.json_of(*BENCH))

    def test_more_sessions_than_the_budget_holds_are_refused(self):
        floor = self.json_of("plan", MINI)["floor_bytes"]
        result = run(*BENCH, "--budget", floor, "--sessions", 2, "--json")
        self.assert_error(result, "RAM_BUDGET", program.FAILED, "another session")

    def test_the_table_has_a_row_for_each_counter(self):
        table = run(*BENCH, "--sessions", 2).stdout.decode()
        for row in ("tok/s, median", "reached of it", "experts hit", "experts missed", "read",
                    "waited for reads", "2 sessions at once", "each session", "drive, decode",
                    "memory, decode", "arithmetic, prefill"):
            self.assertIn(row, table)


class Doctor(program.ProgramTest):
    @classmethod
    def setUpClass(cls):
        floor = json.loads(run("plan", MINI, "--json").stdout)["floor_bytes"]
        cls.at_floor = json.loads(run("doctor", MINI, "--budget", floor, "--json").stdout)

    def test_the_speeds_follow_from_the_figures_beside_them(self):
        found = self.at_floor
        experts = found["token_expert_bytes"]
        info = self.json_of("info", MINI)
        self.assertEqual(experts, 7 * info["experts_per_token"] * info["expert_bytes"])
        warm = found["memory_limit_bytes_s"] / (found["token_trunk_bytes"] + experts)
        drive = found["disk_limit_bytes_s"]
        missed = experts * (1 - found["experts_cached_share"])
        self.assertLess(found["experts_cached_share"], 1)
        self.assertAlmostEqual(found["decode_resident_tok_s"] / warm, 1, places=6)
        self.assertAlmostEqual(found["decode_cold_tok_s"] / min(warm, drive / experts), 1, places=6)
        self.assertAlmostEqual(found["decode_here_tok_s"] / min(warm, drive / missed), 1, places=6)
        self.assertIn(found["limited_by"], ("memory", "drive", "arithmetic"))
        self.assertTrue(any("below the recommended" in sentence for sentence in found["advice"]))

    def test_the_budget_that_keeps_every_expert_does(self):
        wanted = self.at_floor["resident_budget_bytes"]
        found = self.json_of("doctor", MINI, "--budget", wanted)
        self.assertEqual(found["experts_cached_share"], 1)
        self.assertLess(self.json_of("doctor", MINI, "--budget", wanted - 1)
                        ["experts_cached_share"], 1)

    def test_the_report_shows_the_arithmetic(self):
        report = run("doctor", MINI).stdout.decode()
        for row in ("processor", "threads", "memory", "budget", "drive", "cold", "warm", "here",
                    "prefill"):
            self.assertRegex(report, rf"(?m)^ *{row} ")
        amount = r"([\d.]+ [kMG]B)"
        speed, *amounts = re.search(rf"warm +([\d.]+) tok/s = {amount}/s of memory / "
                                    rf"\({amount} of trunk \+ {amount} of experts\)",
                                    report).groups()
        memory, trunk, experts = map(bytes_of, amounts)
        self.assertAlmostEqual(memory / (trunk + experts) / float(speed), 1, delta=0.05)

    def test_cores_that_it_may_not_use_are_told(self):
        online = os.cpu_count()
        if online < 2:
            self.skipTest("one core")
        core = min(os.sched_getaffinity(0))
        result = run("doctor", MINI, "--json", "--threads", 2,
                     preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        self.assert_ok(result)
        found = self.one_object(result.stdout)
        self.assertEqual(found["cores_granted"], 1)
        self.assertLessEqual(found["cores_physical"], 1)  # 0 where the system does not tell
        self.assertEqual(found["cores_online"], online)
        advice = "\n".join(found["advice"])
        self.assertIn("--threads 1", advice)
        self.assertIn(f"1 of the machine's {online} cores", advice)

    def test_why_reads_are_not_direct_is_told(self):
        result = run("doctor", MINI, "--io", "buffered").stdout.decode()
        self.assertIn("through the page cache: --io buffered", result)
        self.assertFalse(self.json_of("doctor", MINI, "--io", "buffered")["direct_io"])

    def test_what_is_not_in_use_although_it_is_there_is_told(self):
        found = self.json_of("doctor", MINI, "--isa", "scalar")
        self.assertIn("No vector instructions", "\n".join(found["advice"]))
        self.assertFalse(set(found["features"]) & set(found["features_missing"]))
