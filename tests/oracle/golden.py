# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of the forward pass from the public engines, or checks them live.

    python golden.py write [--build build/release]
    python golden.py check

tests/golden/forward/CASE/ holds a container, tokens.i32, and what the public engine computes on
the container's weights: expected.json (sizes, positions, limits) and expected.f32, raw
little-endian [layers][positions, hidden], then logits [positions, vocab].
tests/golden/forward_golden_test.cc reads them in every test run. `check` runs the engines again
on the committed containers.
"""

import argparse
import importlib.metadata
import json
import shutil
import sys

import numpy as np
import torch

import checkpoints
import compare
import engines
import pipeline

FOLDER = pipeline.ROOT / "tests" / "golden" / "forward"
# Ends of the text, of chunks and of the convolution's reach.
POSITIONS = [0, 1, 6, 16, 63, 64, 149]
# The engines themselves round differently from processor to processor.
AGREE = 5e-6


def reference(prepared):
    return engines.run(
        prepared.case.family, prepared.config, prepared.weights, prepared.ids,
        prepared.folder / "engine",
    )


def chosen(trace):
    """The values that are kept: one array a layer, then the logits."""
    return [x[POSITIONS].float().contiguous() for x in [*trace.hidden, trace.logits]]


def write(build):
    for case in filter(lambda c: c.golden, checkpoints.CASES):
        prepared = pipeline.Prepared(case, build)
        trace = reference(prepared)
        folder = FOLDER / case.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(prepared.container, folder / "container")
        (folder / "tokens.i32").write_bytes(prepared.ids.numpy().astype("<i4").tobytes())
        version = importlib.metadata.version(engines.NAMES[case.family])
        expected = dict(
            oracle=f"{engines.NAMES[case.family]} {version}",
            purpose=case.purpose,
            layers=case.layers,
            hidden=case.hidden,
            vocab=checkpoints.VOCAB,
            positions=POSITIONS,
            limit=engines.LIMITS[case.family],
            largest=[x.abs().max().item() for x in [*trace.hidden, trace.logits]],
        )
        (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
        values = np.concatenate([x.numpy().ravel() for x in chosen(trace)])
        (folder / "expected.f32").write_bytes(values.astype("<f4").tobytes())
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    print(f"{FOLDER}: {size / 1e6:.2f} MB")


def check(counts):
    for case in filter(lambda c: c.golden, checkpoints.CASES):
        folder = FOLDER / case.name
        ids = torch.from_numpy(np.fromfile(folder / "tokens.i32", "<i4").astype(np.int64))
        prepared = pipeline.Committed(case, folder / "container", ids)
        expected = json.loads((folder / "expected.json").read_text())
        stored = torch.from_numpy(np.fromfile(folder / "expected.f32", "<f4").copy())
        now = chosen(reference(prepared))
        sizes = [x.numel() for x in now]
        counts.check(f"{case.name}: size of expected.f32", sum(sizes) == len(stored))
        worst = 0.0
        for ours, was, largest in zip(now, stored.split(sizes), expected["largest"]):
            difference = (ours.flatten() - was).abs().max().item() / largest
            worst = max(worst, difference)
        counts.check(f"{case.name}: golden values", worst <= AGREE, f"{worst:.1e}")
        print(f"golden {case.name}: {expected['oracle']}, {worst:.1e} of the largest value")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("--build", default=pipeline.ROOT / "build" / "release")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.action == "write":
        write(options.build)
        return
    counts = compare.Counts()
    check(counts)
    print(f"golden: {counts}")
    sys.exit(counts.failed > 0)


if __name__ == "__main__":
    main()
