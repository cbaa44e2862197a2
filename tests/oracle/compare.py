# SPDX-License-Identifier: Apache-2.0
"""Compares the forward pass with transformers and mlx-lm, layer by layer, live.

    python compare.py [--build build/release] [--case NAME]... [--table FILE]

For every case of checkpoints.py: a random checkpoint is written and converted, and the
container's own dequantised weights run in the public engine, in the page's formulas (page.py, f32
and f64) and in ours, for each instruction set, in chunks of 1, 2, 7 and 64, and after save and
restore. A check is one such run against the public engine, all layers and the logits. Prints a
markdown table by kind of layer; --table also puts it between the markers of FILE. Exit code 1 if
a check failed.
"""

import argparse
import collections
import pathlib
import sys

import torch

import checkpoints
import engines
import pipeline

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "mini"))

import model as mini  # noqa: E402  (examples/mini)

# (chunk, threads, whether the session is saved and restored on the way)
RUNS = [(1, 1, False), (2, 1, False), (7, 2, False), (64, 1, False), (7, 1, True), (64, 2, True)]
BEGIN = "<!-- oracle table: python tests/oracle/compare.py --table docs/architecture.md -->"
END = "<!-- end of the oracle table -->"
KINDS = ["KDA", "MLA", "dense", "MoE", "logits"]


class Counts:
    """Verdicts, printed as they come."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name}: {detail}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped {name}: {reason}", flush=True)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Worst:
    """The largest difference by (family, kind of layer, what was compared)."""

    def __init__(self):
        self.values = collections.defaultdict(float)

    def note(self, family, kind, what, value):
        self.values[family, kind, what] = max(self.values[family, kind, what], value)

    def run(self, case, what, hidden, logits, reference):
        """Notes every layer under both its kinds; returns the largest of all."""
        largest = 0.0
        for layer, (ours, theirs) in enumerate(zip(hidden, reference.hidden)):
            value = pipeline.distance(ours, theirs)
            for kind in kinds(case, layer):
                self.note(case.family, kind, what, value)
            largest = max(largest, value)
        value = pipeline.distance(logits, reference.logits)
        self.note(case.family, "logits", what, value)
        return max(largest, value)

    def parts(self, case, trace, reference):
        """What attention and feed-forward add, each under its own kind."""
        for (layer, part), theirs in reference.parts.items():
            kind = kinds(case, layer)[part == "ffn"]
            value = pipeline.distance(trace.parts[layer, part], theirs)
            self.note(case.family, kind, "inside", value)


def kinds(case, layer):
    """The kinds of a layer's attention and of its feed-forward."""
    attention = "MLA" if case.is_mla(layer) else "KDA"
    return attention, "MoE" if case.is_moe(layer) else "dense"


def compare(case, build, counts, worst):
    prepared = pipeline.Prepared(case, build)
    formulas = prepared.page(torch.float64)
    scratch = prepared.folder / "engine"
    theirs = engines.run(
        case.family, prepared.config, prepared.weights, prepared.ids, scratch
    )
    limit = engines.LIMITS[case.family]
    name = f"{case.name}, {engines.NAMES[case.family]}"
    trace = prepared.page()
    against_page = worst.run(case, "page", trace.hidden, trace.logits, theirs)
    counts.check(f"{name}: the page", against_page <= limit, f"{against_page:.1e} of {limit:.0e}")
    worst.run(case, "oracle, f64", theirs.hidden, theirs.logits, formulas)
    worst.parts(case, trace, theirs)
    if is_mini(case):
        compare_mini(prepared, name, theirs, limit, counts)
    largest = compare_ours(prepared, build, name, theirs, formulas, limit, counts, worst)
    print(
        f"{name}: ours {largest:.1e}, page {against_page:.1e}, limit {limit:.0e}, "
        f"margin {formulas.margin:.1e}, trunk {' '.join(prepared.formats)}",
        flush=True,
    )


def compare_ours(prepared, build, name, theirs, formulas, limit, counts, worst):
    """Every run of our engine against the public one; returns the largest difference."""
    case, largest = prepared.case, 0.0
    for isa, present in pipeline.isas():
        for chunk, threads, restore in RUNS:
            check = f"{name}: {isa}, chunks of {chunk}"
            if restore:
                check += ", saved and restored"
            if not present:
                counts.skip(check, f"this machine has no {isa}")
                continue
            try:
                hidden, logits = prepared.ours(build, chunk, isa, threads, restore)
            except pipeline.ProgramError as error:
                counts.check(check, False, error)
                continue
            value = worst.run(case, "ours", hidden, logits, theirs)
            worst.run(case, "ours, f64", hidden, logits, formulas)
            counts.check(check, value <= limit, f"{value:.1e} of {limit:.0e}")
            largest = max(largest, value)
    return largest


def is_mini(case):
    """Whether examples/mini/model.py has this case's switches, which are Kimi K3's."""
    return (
        case.family == "kimi_k3" and case.q_lora and case.latent and case.latent_norm
        and case.output_gate and case.full_rank_gate and case.lower_bound and case.blocks
        and case.linear_beta and case.renormalise
    )


@torch.no_grad()
def compare_mini(prepared, name, theirs, limit, counts):
    """examples/mini/model.py on the same weights, in both of its forms."""
    config = mini.Config.from_release(prepared.config["text_config"])
    model = mini.Model(config).eval()
    weights = {key: torch.from_numpy(w) for key, w in prepared.weights.items()}
    for key in weights:
        if key.endswith("A_log"):
            weights[key] = weights[key].flatten()[: config.kda_heads]
    model.load_tensors(weights)
    for recurrent in (False, True):
        hidden = []
        logits = model(prepared.ids[None], recurrent, hidden)[0]
        values = [pipeline.distance(a[0], b) for a, b in zip(hidden, theirs.hidden)]
        value = max(values + [pipeline.distance(logits, theirs.logits)])
        form = "recurrent" if recurrent else "chunked"
        check = f"{name}: examples/mini/model.py, {form}"
        counts.check(check, value <= limit, f"{value:.1e} of {limit:.0e}")


def table(worst):
    """Markdown: the largest differences by family and kind of layer."""
    columns = ["ours", "ours, f64", "oracle, f64", "page", "inside"]
    lines = [
        "| family (oracle) | kind of layer | libwaste, oracle | libwaste, formulas in f64 "
        "| oracle, formulas in f64 | formulas in f32, oracle | the same inside a layer | limit |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for family, oracle in engines.NAMES.items():
        for kind in KINDS:
            cells = []
            for column in columns:
                value = worst.values.get((family, kind, column))
                cells.append("–" if value is None else f"{value:.1e}")
            limit = f"{engines.LIMITS[family]:.0e}"
            lines.append(f"| {family} ({oracle}) | {kind} | {' | '.join(cells)} | {limit} |")
    return "\n".join(lines)


def put_table(path, text):
    """Replaces what stands between the markers of a file."""
    old = path.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"compare: {path} has no lines\n{BEGIN}\n{END}")
    before, rest = old.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=pipeline.ROOT / "build" / "release")
    parser.add_argument("--case", action="append", help="only this one; may be repeated")
    parser.add_argument("--table", type=pathlib.Path, help="file with the markers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = [c for c in checkpoints.CASES if not options.case or c.name in options.case]
    counts, worst = Counts(), Worst()
    for case in cases:
        try:
            compare(case, options.build, counts, worst)
        except (pipeline.ProgramError, pipeline.container_v0.ContainerError) as error:
            counts.check(case.name, False, error)
    print(f"\n{table(worst)}\n")
    if options.table:
        put_table(options.table, table(worst))
    print(f"compare: {counts}")
    sys.exit(counts.failed > 0)


if __name__ == "__main__":
    main()
