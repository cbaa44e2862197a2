# SPDX-License-Identifier: Apache-2.0
"""From a case to numbers: checkpoint, container, its weights, and our engine's hidden states.

The programs come from a build folder: `waste` converts, `dump_hidden` runs the forward pass. Work
files go to build/oracle, one folder a case, made anew each time.
"""

import pathlib
import platform
import shutil
import subprocess

import numpy as np
import torch

import checkpoints
import container_v0
import page

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "oracle"
TOKENS = 150  # two whole chunks of 64 and a part of one
# Routing is a step function: scores of the last chosen and the first rejected expert that are as
# close as rounding may change places, and all behind them is different. A text is drawn again until
# no decision in it is closer than this, so that what differs is arithmetic.
MARGIN_MIN = 5e-5
ATTEMPTS = 50

# What a processor must say that it can do, by instruction set, in the order of preference.
ISA_FLAGS = {
    "scalar": set(),
    "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl"},
}


class ProgramError(Exception):
    """A program of ours failed; the text is what it said."""


def call(*command):
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        text = (done.stderr or done.stdout).strip()
        raise ProgramError(f"{' '.join(command)}: exit code {done.returncode}\n{text}")


def isas():
    """(name, whether this machine has it)."""
    if platform.machine() in ("aarch64", "arm64"):
        return [("scalar", True), ("neon", True)]
    flags = set()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.split(":")[1].split())
            break
    return [(name, needed <= flags) for name, needed in ISA_FLAGS.items()]


class Committed:
    """A case whose container exists: its weights, and how our engine runs on it."""

    def __init__(self, case, container, ids=None):
        self.case = case
        self.folder = WORK / case.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.container = pathlib.Path(container)
        reader = container_v0.Container(container)
        self.weights = reader.tensors()
        self.formats = reader.formats()
        self.config = checkpoints.config(case)
        self.ids = self.choose_ids() if ids is None else ids

    def choose_ids(self):
        """The first text that no routing decision of is close."""
        formulas = page.Page(self.config, self.weights, torch.float64)
        for attempt in range(ATTEMPTS):
            ids = checkpoints.token_ids(self.case, TOKENS, attempt)
            if formulas.run(ids).margin > MARGIN_MIN:
                return ids
        raise ProgramError(f"{self.case.name}: no text without close routing decisions")

    def page(self, dtype=torch.float32):
        return page.Page(self.config, self.weights, dtype).run(self.ids)

    def ours(self, build, chunk, isa, threads=1, restore=False):
        """Hidden states [layers][T, hidden] and logits [T, vocab] of the forward pass."""
        tokens, out = self.folder / "tokens.i32", self.folder / "hidden.f32"
        tokens.write_bytes(self.ids.numpy().astype("<i4").tobytes())
        extra = ["restore"] if restore else []
        dump = pathlib.Path(build) / "tests" / "dump_hidden"
        call(dump, self.container, tokens, chunk, out, threads, isa, *extra)
        data = np.fromfile(out, "<f4")
        case, count = self.case, len(self.ids)
        hidden = case.layers * count * case.hidden
        if len(data) != hidden + count * checkpoints.VOCAB:
            raise ProgramError(f"{dump} wrote {len(data)} floats")
        states = torch.from_numpy(data[:hidden].reshape(case.layers, count, case.hidden))
        return list(states), torch.from_numpy(data[hidden:].reshape(count, -1))


class Prepared(Committed):
    """A case from the start: its checkpoint is written and converted."""

    def __init__(self, case, build):
        folder = WORK / case.name
        shutil.rmtree(folder, ignore_errors=True)
        checkpoints.write(case, folder / "checkpoint")
        call(
            pathlib.Path(build) / "waste", "convert", folder / "checkpoint", folder / "container",
            "--stages", case.stages, "--index-bits", case.index_bits, "--trunk-bits",
            case.trunk_bits, "--quantise-from", case.quantise_from,
        )
        super().__init__(case, folder / "container")


def distance(a, b):
    """The largest difference, of the largest value of `b`."""
    a, b = a.double(), b.double()
    return ((a - b).abs().max() / b.abs().max()).item()
