# SPDX-License-Identifier: Apache-2.0
"""Every command on the small trained model of examples/mini."""
import json
import math
import os
import pathlib
import tempfile
import unittest

import program
from program import MINI, run

QUESTION = "What is the capital of Italy?"
ANSWER = "The capital of Italy is Rome."
PLAN_KEYS = {"floor_bytes", "recommended_bytes", "trunk_bytes", "state_bytes", "scratch_bytes",
             "staging_bytes", "cache_bytes", "usable_bytes", "reserved_bytes", "budget_bytes",
             "fits"}
INFO_KEYS = {"name", "vocab_size", "layer_count", "hidden_size", "expert_count",
             "experts_per_token", "context", "expert_bytes", "container_bytes", "budget_bytes",
             "token_trunk_bytes", "token_flops",
             "cache_slots", "threads", "isa", "direct_io", "thinking", "eos_token", "has_chat",
             "folders"}
TEXTS = ["Hello, world", "", "  two  blanks\n", "naïve 北京 \U0001f468\u200d\U0001f469", "<|open|>"]
SENTENCES = "The capital of Italy is Rome. The chemical symbol of iron is Fe. " * 6


class Answers(program.ProgramTest):
    def test_it_knows_the_capital_of_italy(self):
        result = run("run", MINI, QUESTION)
        self.assert_ok(result)
        self.assertEqual(result.stdout.decode(), ANSWER + "\n")
        self.assertEqual(result.stderr, b"")

    def test_counters_add_up(self):
        answer = self.json_of("run", MINI, QUESTION)
        self.assertEqual(answer["text"], ANSWER)
        self.assertGreater(answer["experts_hit"] + answer["experts_missed"], 0)
        self.assertGreater(answer["prefill_tok_s"], 0)
        self.assertGreater(answer["decode_tok_s"], 0)
        self.assertLessEqual(answer["bytes_read"] > 0, answer["experts_missed"] > 0)

    def test_placement_changes_nothing(self):
        floor = self.json_of("plan", MINI)["floor_bytes"]
        expected = self.json_of("run", MINI, QUESTION)["tokens"]
        for options in (["--budget", floor], ["--threads", 1], ["--threads", 3],
                        ["--io", "buffered"], ["--isa", "scalar"]):
            with self.subTest(options=options):
                self.assertEqual(self.json_of("run", MINI, QUESTION, *options)["tokens"], expected)

    def test_a_list_of_cpus_changes_no_text_and_decides_the_threads(self):
        granted = sorted(os.sched_getaffinity(0))
        for cpus in (granted[:1], granted[-1:], granted[:2]):
            chosen = ["--cpus", ",".join(map(str, cpus))]
            with self.subTest(chosen=chosen):
                self.assertEqual(self.json_of("info", MINI, *chosen)["threads"], len(cpus))
                self.assertEqual(self.json_of("info", MINI, *chosen, "--threads", 3)["threads"], 3)
                self.assertEqual(self.json_of("run", MINI, QUESTION, *chosen)["text"], ANSWER)

    def test_a_list_that_cannot_be_is_refused_with_the_cpus_there_are(self):
        for cpus, said in (("x", 'item 1, "x", is no CPU'), ("3-1", "ends before it begins"),
                           ("0,", "item 2 is empty"), ("8191", "and not 8191")):
            for command in (["run", MINI, QUESTION], ["plan", MINI], ["bench", MINI]):
                with self.subTest(cpus=cpus, command=command[0]):
                    self.assert_error(run(*command, "--cpus", cpus, "--json"), "ARGUMENT",
                                      program.FAILED, "this process may use the CPUs", said)

    def test_every_instruction_set_that_is_told_can_be_forced(self):
        isas = self.json_of("version")["isas"]
        self.assertEqual(self.json_of("info", MINI)["isa"], isas[0])
        for isa in isas:
            with self.subTest(isa=isa):
                self.assertEqual(self.json_of("info", MINI, "--isa", isa)["isa"], isa)
                self.assertEqual(self.json_of("run", MINI, QUESTION, "--isa", isa)["text"], ANSWER)

    def test_one_that_is_not_there_is_refused_with_those_that_are(self):
        isas = self.json_of("version")["isas"]
        help_text = run("run", "--help").stdout.decode()
        for isa in {"avx2", "avx512", "neon"} - set(isas):
            with self.subTest(isa=isa):
                self.assertIn(isa, help_text)
                result = run("run", MINI, QUESTION, "--isa", isa, "--json")
                self.assert_error(result, "UNSUPPORTED", program.FAILED, ", ".join(isas))

    def test_the_same_seed_gives_the_same_text(self):
        arguments = ("run", MINI, "Hello", "--temperature", 2, "--max-tokens", 30)
        first = self.json_of(*arguments, "--seed", 5)
        self.assertEqual(first["tokens"], self.json_of(*arguments, "--seed", 5)["tokens"])
        others = [self.json_of(*arguments, "--seed", seed)["tokens"] for seed in range(6, 10)]
        self.assertTrue(any(tokens != first["tokens"] for tokens in others))

    def test_raw_text_goes_on(self):
        answer = self.json_of("run", MINI, "The capital of Italy is", "--raw", "--max-tokens", 4)
        self.assertGreater(len(answer["tokens"]), 0)

    def test_a_conversation_remembers(self):
        lines = run("chat", MINI, "--json", stdin=b"My name is Nora.\nWhat is my name?\n").stdout
        self.assertIn("Nora", json.loads(lines.splitlines()[1])["text"])


class Tokens(program.ProgramTest):
    def test_text_comes_back_from_its_tokens(self):
        for text in TEXTS:
            with self.subTest(text=text):
                tokens = self.json_of("tokenize", MINI, text)["tokens"]
                self.assertEqual(self.json_of("tokenize", MINI, stdin=text.encode())["tokens"],
                                 tokens)
                if tokens:
                    result = run("detokenize", MINI, *tokens)
                    self.assert_ok(result)
                    self.assertEqual(result.stdout, text.encode())
                    self.assertEqual(self.json_of("detokenize", MINI, *tokens),
                                     {"text": text, "hex": text.encode().hex()})

    def test_ids_are_read_from_stdin(self):
        tokens = run("tokenize", MINI, "Hello, world").stdout
        self.assertEqual(run("detokenize", MINI, stdin=tokens).stdout, b"Hello, world")

    def test_specials_are_special_in_markup_only(self):
        plain = self.json_of("tokenize", MINI, "<|open|>")["tokens"]
        markup = self.json_of("tokenize", MINI, "<|open|>", "--markup")["tokens"]
        self.assertEqual(len(markup), 1)
        self.assertGreater(len(plain), 1)

    def test_an_id_that_no_token_has_is_refused(self):
        self.assert_error(run("detokenize", MINI, "1", "99999999", "--json"), "ARGUMENT",
                          program.FAILED, "99999999")


class Numbers(program.ProgramTest):
    def test_a_plan_adds_up(self):
        plan = self.json_of("plan", MINI)
        self.assertEqual(set(plan), PLAN_KEYS)
        self.assertEqual(plan["floor_bytes"], plan["trunk_bytes"] + plan["state_bytes"] +
                         plan["scratch_bytes"] + plan["staging_bytes"])
        self.assertTrue(plan["fits"])
        self.assertFalse(self.json_of("plan", MINI, "--budget", plan["floor_bytes"] - 1)["fits"])
        self.assertIn(b"floor", run("plan", MINI).stdout)

    def test_info_has_its_keys(self):
        info = self.json_of("info", MINI, "--threads", 1, "--context", 128, "--isa", "scalar")
        self.assertEqual(set(info), INFO_KEYS)
        self.assertEqual((info["threads"], info["context"], info["isa"]), (1, 128, "scalar"))
        self.assertIn(b"vocab_size", run("info", MINI).stdout)

    def test_perplexity_of_known_sentences_is_low_and_windows_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "text.txt")
            path.write_text(SENTENCES)
            whole = self.json_of("eval", MINI, "--text", path)
            tokens = self.json_of("tokenize", MINI, SENTENCES)["tokens"]
            self.assertEqual(whole["tokens"], len(tokens) - 1)
            self.assertAlmostEqual(whole["perplexity"], math.exp(whole["nll"]), places=6)
            self.assertLess(whole["perplexity"], 100)
            windows = self.json_of("eval", MINI, "--text", path, "--context", 64)
            self.assertEqual((windows["tokens"], windows["context"]), (whole["tokens"], 64))
            self.assertGreater(windows["perplexity"], 1)
            self.assertEqual(run("eval", MINI, "--text", path).returncode, program.OK)

    def test_a_text_of_one_token_or_of_no_file_is_refused(self):
        self.assert_error(run("eval", MINI, "--text", "-", "--json", stdin=b""), "ARGUMENT",
                          program.FAILED)
        self.assert_error(run("eval", MINI, "--text", "no-such.txt", "--json"), "IO",
                          program.FAILED, "no-such.txt")

    def test_the_next_token_table_is_sorted(self):
        result = self.json_of("eval", MINI, "The capital of Italy is", "--top", 5)
        self.assertEqual(len(result["top"]), 5)
        logprobs = [row["logprob"] for row in result["top"]]
        self.assertEqual(logprobs, sorted(logprobs, reverse=True))
        self.assertLessEqual(sum(row["probability"] for row in result["top"]), 1 + 1e-9)
        self.assertEqual(len(run("eval", MINI, "The capital", "--top", 3).stdout.splitlines()), 3)

    def test_doctor_says_what_limits(self):
        doctor = self.json_of("doctor", MINI)
        self.assertEqual(doctor["limited_by"], "memory")  # all of it fits
        self.assertEqual(doctor["experts_cached_share"], 1)
        self.assertGreater(doctor["memory_limit_bytes_s"], 1e8)
        self.assertGreater(doctor["fma_limit_flops"], 1e8)
        report = run("doctor", MINI).stdout.decode()
        self.assertIn("Memory bandwidth will limit it", report)

    def test_bench_tells_both_speeds(self):
        arguments = ("bench", MINI, "--prompt-tokens", 32, "--tokens", 4, "--repeats", 3)
        bench = self.json_of(*arguments)
        for phase, tokens in (("prefill", 32), ("decode", 4)):
            self.assertEqual(bench[phase]["tokens"], tokens)
            self.assertEqual(len(bench[phase]["tok_s_all"]), 3)
            self.assertGreater(bench[f"{phase}_limit_tok_s"], 0)  # which is larger, load decides
            self.assertGreater(bench[phase]["tok_s_min"], 0)
            self.assertLessEqual(bench[phase]["tok_s_min"], bench[phase]["tok_s"])
        self.assertIn(b"decode", run(*arguments).stdout)


class Files(program.ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name, "copy.waste")
        program.copy_model(MINI, self.model)

    def test_a_sound_model_is_sound(self):
        result = self.json_of("verify", self.model)
        self.assertEqual(set(result), {"path", "ok", "bytes", "seconds", "notes"})
        self.assertTrue(result["ok"])
        self.assertIn(b"sound", run("verify", self.model).stdout)

    def test_one_flipped_bit_of_a_record_is_found(self):
        victim = self.model / "experts-L3.bin"
        data = bytearray(victim.read_bytes())
        data[200] ^= 1
        victim.write_bytes(data)
        self.assert_error(run("verify", self.model, "--json"), "CORRUPT", program.FAILED, "3",
                          "expert 0")
        self.assertEqual(run("verify", self.model).returncode, program.FAILED)

    def test_a_missing_or_cut_file_is_named(self):
        for path in sorted(self.model.iterdir()):
            data = path.read_bytes()
            for damage in ("cut", "missing"):
                if (path.name, damage) == ("chat.json", "missing"):
                    continue  # a container may have none
                with self.subTest(file=path.name, damage=damage):
                    path.unlink()
                    if damage == "cut":
                        path.write_bytes(data[:len(data) * 2 // 5])
                    result = run("run", self.model, "Hi", "--json")
                    self.assertEqual(result.returncode, program.FAILED)
                    self.assertIn(path.stem.removesuffix("s"),
                                  self.one_object(result.stdout)["error"]["message"])
                    self.assertEqual(run("verify", self.model).returncode, program.FAILED)
                path.write_bytes(data)

    def test_a_conversion_that_cannot_be_leaves_nothing(self):
        target = self.model.parent / "out.waste"
        self.assert_error(run("convert", self.model.parent / "none", target, "--json"), "IO",
                          program.FAILED, "none")
        self.assertFalse(target.exists())
        result = run("convert", self.model, self.model, "--json")
        self.assertEqual(result.returncode, program.FAILED)

    def test_a_synthetic_model_is_sound_and_runs(self):
        target = self.model.parent / "synthetic.waste"
        result = self.json_of("synth", "mini", target, "--layers", 5, "--experts", 8)
        self.assertEqual(result["target"], str(target))
        self.assertEqual(run("verify", target).returncode, program.OK)
        info = self.json_of("info", target)
        self.assertEqual((info["layer_count"], info["expert_count"]), (5, 8))
        first = self.json_of("run", target, "Hi", "--max-tokens", 8)
        again = self.json_of("run", target, "Hi", "--max-tokens", 8, "--threads", 1)
        self.assertEqual(first["tokens"], again["tokens"])
        self.assert_error(run("synth", "k4", target, "--json"), "ARGUMENT", program.FAILED, "k3")

    def test_a_state_of_another_model_is_refused(self):
        state = self.model.parent / "state"
        state.write_bytes(b"no state")
        result = run("chat", MINI, "--json", stdin=f"/load {state}\n".encode())
        self.assertEqual(result.returncode, program.FAILED)
        self.assertIn("state", self.one_object(result.stdout)["error"]["message"])


if __name__ == "__main__":
    unittest.main()
