# SPDX-License-Identifier: Apache-2.0
"""What streaming costs and keeps to, on one container: a table of budgets, one text at all.

    python3 tests/bench/streaming.py MODEL [--tokens N] [--prompt-tokens N] [--repeats N]

MODEL is best one that is much larger than memory allows:
    build/release/waste synth kimi-linear-48b kl.waste
Budgets are the floor, one and two working sets of experts more, and automatic; each begins without
what an earlier run has learned. Prints Markdown, and ends with 1 if a text differs or a run took
more memory than its budget and 64 MiB.
"""
import argparse
import json
import pathlib
import subprocess
import sys

WASTE = "build/release/waste"
SLACK = 64 << 20
PROMPT = "The library by the river opens at nine."


def waste(command, model, *options):
    (pathlib.Path(model) / "usage.waste").unlink(missing_ok=True)
    ended = subprocess.run([WASTE, command, model, *map(str, options), "--json"],
                           capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"waste {command} {model}: {ended.stderr}")
    return json.loads(ended.stdout)


def budgets(model):
    plan = waste("plan", model)
    working_set = (plan["recommended_bytes"] - plan["floor_bytes"]) // 2
    yield "floor", plan["floor_bytes"]
    yield "floor + 1 working set", plan["floor_bytes"] + working_set
    yield "floor + 2 working sets", plan["recommended_bytes"]
    yield "automatic", plan["budget_bytes"]


def row(name, budget, bench):
    decode, prefill = bench["decode"], bench["prefill"]
    hit_rate = decode["hit_rate"] or 0
    return (f"| {name}: {budget / 2**30:.2f} GiB | {bench['decode_tok_s']:.2f} "
            f"({decode['tok_s_min']:.2f} to {decode['tok_s_max']:.2f}) | "
            f"{bench['decode_limit_tok_s']:.2f} | {hit_rate:.0%} | "
            f"{decode['experts_foreseen'] / max(decode['experts_missed'], 1):.0%} | "
            f"{bench['disk_bytes_s'] / 1e9:.2f} of {bench['disk_limit_bytes_s'] / 1e9:.2f} GB/s, "
            f"{bench['disk_share']:.0%} | {prefill['tok_s']:.1f} | "
            f"{(bench['peak_rss_bytes'] - bench['budget_bytes']) / 2**20:+.0f} MiB |")


def bench_budgets(model, options):
    """Prints the table; returns what exceeded its budget."""
    print("| budget | decode tok/s | its limit | hits | misses foreseen | drive | prefill tok/s | "
          "peak RSS beside the budget |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    exceeded = []
    for name, budget in budgets(model):
        bench = waste("bench", model, "--budget", budget, "--tokens", options.tokens,
                      "--prompt-tokens", options.prompt_tokens, "--repeats", options.repeats)
        print(row(name, budget, bench), flush=True)
        if bench["peak_rss_bytes"] > bench["budget_bytes"] + SLACK:
            exceeded.append(name)
    return exceeded


def placements(model):
    named = dict(budgets(model))
    floor, most = named["floor"], named["floor + 2 working sets"]
    for name, budget in named.items():
        yield name, ["--budget", budget]
    yield "floor, one thread", ["--budget", floor, "--threads", 1]
    yield "floor, no lookahead", ["--budget", floor, "--no-lookahead"]
    yield "floor, buffered", ["--budget", floor, "--io", "buffered"]
    yield "floor, one lane", ["--budget", floor, "--lanes", 1]
    yield "2 working sets, eight lanes, no lookahead", ["--budget", most, "--lanes", 8,
                                                        "--no-lookahead"]


def compare_texts(model, tokens):
    """Returns the placements whose text is not the first one's."""
    expected = None
    different = []
    for name, options in placements(model):
        answer = waste("run", model, PROMPT, "--raw", "--max-tokens", tokens, "--temperature", 1,
                       "--seed", 7, *options)
        expected = expected or answer["tokens"]
        if answer["tokens"] != expected:
            different.append(name)
    print(f"\nThe same {len(expected)} tokens at all of: " +
          ", ".join(name for name, _ in placements(model) if name not in different) + ".")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    exceeded = bench_budgets(options.model, options)
    different = compare_texts(options.model, options.tokens)
    for name in exceeded:
        print(f"more memory than budgeted: {name}")
    for name in different:
        print(f"another text: {name}")
    return 1 if exceeded or different else 0


if __name__ == "__main__":
    sys.exit(main())
