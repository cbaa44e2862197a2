# SPDX-License-Identifier: Apache-2.0
"""A container whose experts lie in two folders: what info, doctor and verify say of them, and that
answers stay what they are.
"""
import json
import pathlib
import shutil
import tempfile
import unittest

import program
from program import MINI, run

QUESTION = "What is the capital of Italy?"
ANSWER = "The capital of Italy is Rome."


class Drives(program.ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name, "copy.waste")
        self.other = pathlib.Path(folder.name, "other")
        program.copy_model(MINI, self.model)
        self.other.mkdir()
        for bank in self.model.glob("experts-L*.bin"):
            shutil.copy(bank, self.other)
        self.list_folders("../other")

    def list_folders(self, *folders):
        (self.model / "drives.json").write_text(json.dumps({"folders": folders}))

    def test_info_and_doctor_tell_the_folders(self):
        folders = [str(self.model), f"{self.model}/../other"]
        self.assertEqual(self.json_of("info", self.model)["folders"], folders)
        doctor = self.json_of("doctor", self.model)
        self.assertEqual([drive["folder"] for drive in doctor["drives"]], folders)
        for drive in doctor["drives"]:
            self.assertGreater(drive["bytes_s"], 1e6)
        self.assertAlmostEqual(doctor["disk_limit_bytes_s"], delta=1e3,  # both are one drive here
                               second=max(drive["bytes_s"] for drive in doctor["drives"]))
        report = run("doctor", self.model).stdout
        self.assertIn(b"../other", report)
        self.assertIn(b"no faster than one", report)

    def test_a_stripe_is_as_fast_as_its_drives_in_turn(self):
        banks = sorted(path.name for path in self.other.iterdir())
        for number, bank in enumerate(banks):
            ((self.model if number % 2 else self.other) / bank).unlink()
        doctor = self.json_of("doctor", self.model)
        speeds = [drive["bytes_s"] for drive in doctor["drives"]]
        self.assertGreaterEqual(doctor["disk_limit_bytes_s"], min(speeds) * 0.999)
        self.assertLessEqual(doctor["disk_limit_bytes_s"], max(speeds) * 1.001)
        self.assertEqual(run("run", self.model, QUESTION).stdout.decode(), ANSWER + "\n")

    def test_verify_reads_the_copies_too(self):
        both = self.json_of("verify", self.model)["bytes"]
        banks = sum(path.stat().st_size for path in self.other.iterdir())
        self.assertEqual(both, self.json_of("verify", MINI)["bytes"] + banks)
        victim = self.other / "experts-L3.bin"
        data = bytearray(victim.read_bytes())
        data[200] ^= 1
        victim.write_bytes(data)
        self.assert_error(run("verify", self.model, "--json"), "CORRUPT", program.FAILED,
                          "other/experts-L3.bin")

    def test_a_folder_that_is_gone_is_a_note_and_changes_no_answer(self):
        shutil.rmtree(self.other)
        result = run("run", self.model, QUESTION)
        self.assert_ok(result)
        self.assertEqual(result.stdout.decode(), ANSWER + "\n")
        self.assertEqual(result.stderr.count(b"note:"), 1)
        self.assertIn(b"other", result.stderr)

    def test_a_damaged_copy_is_a_note_and_changes_no_answer(self):
        size = self.json_of("info", MINI)["expert_bytes"]
        for bank in self.other.iterdir():  # every header
            data = bytearray(bank.read_bytes())
            for record in range(0, len(data), size):
                data[record] ^= 1
            bank.write_bytes(data)
        floor = self.json_of("plan", self.model)["floor_bytes"]
        result = run("run", self.model, QUESTION, "--budget", floor)
        self.assert_ok(result)
        self.assertEqual(result.stdout.decode(), ANSWER + "\n")
        self.assertIn(b"other/experts-L", result.stderr)

    def test_a_bank_that_is_nowhere_names_the_folders(self):
        for folder in (self.model, self.other):
            (folder / "experts-L2.bin").unlink()
        self.assert_error(run("run", self.model, "Hi", "--json"), "IO", program.FAILED,
                          "experts-L2.bin", "../other")

    def test_a_drives_json_that_is_none_is_refused(self):
        for text, code in (("{", "FORMAT"), ('{"folders": 1}', "FORMAT"),
                           (json.dumps({"folders": ["x"] * 17}), "CORRUPT")):
            with self.subTest(text=text[:30]):
                (self.model / "drives.json").write_text(text)
                self.assert_error(run("info", self.model, "--json"), code, program.FAILED,
                                  "drives.json")


if __name__ == "__main__":
    unittest.main()
