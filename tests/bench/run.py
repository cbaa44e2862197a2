#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All benchmarks: the kernels beside their limits, and a container from end to end.

    python3 tests/bench/run.py kl.waste --out build/bench

`waste synth kimi-linear-48b kl.waste` makes a container in a minute. Writes tables (kernels.md,
model.md), plots (*.svg) and the raw figures (*.json) into the folder of --out, and prints the
tables: the kernels in four minutes, the container in as many as its prompts take. Nothing else
should run meanwhile. docs/performance.md quotes them.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "build/release/tests/bench/kernel_bench"
WASTE = ROOT / "build/release/waste"
# What of the kernels is told: a regular expression, and which limit it stands beside.
SHOWN = r"(trunk/(Q4G|Q8G)/batch:(1|512)|split|table|build|expert/.*/batch:(1|3|16|64|256)|delta)"


def run(*command):
    if not pathlib.Path(command[0]).exists():
        sys.exit(f"{command[0]} is not there: install libbenchmark-dev, and build the preset "
                 "release with -DWASTE_TESTS=ON")
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]} failed: {result.stderr.strip()}")
    return result.stdout


def kernels(out, isa):
    """Medians and spreads of five repetitions, as a table."""
    choice = ["--isa", isa] if isa else []
    text = run(KERNELS, *choice, f"--benchmark_filter={SHOWN}", "--benchmark_repetitions=5",
               "--benchmark_min_time=0.1", "--benchmark_format=json")
    (out / "kernels.json").write_text(text)
    result = json.loads(text)
    context = result["context"]
    lines = [
        f"ISA {context['isa']}; memory {float(context['memory_gb_s']):.1f} GB/s with one thread, "
        f"{float(context['memory_all_gb_s']):.1f} with all; f32 {float(context['fma_gflops']):.0f} "
        f"GFLOP/s and bf16 {float(context['bf16_gflops']):.0f} a thread; look-ups "
        f"{float(context['lookups_g_s']):.1f} G/s a thread", "",
        "| kernel | rate, median (spread) | of its limit |", "|---|---:|---:|"]
    runs = {}
    for one in result["benchmarks"]:
        if one["run_type"] == "iteration" and not one.get("error_occurred"):
            runs.setdefault(one["run_name"].replace("/real_time", ""), []).append(one)
    for name, repeats in runs.items():
        unit = "GB/s" if "GB/s" in repeats[0] else "GFLOP/s"
        rates = sorted(one[unit] for one in repeats)
        shares = sorted(one["share"] for one in repeats if "share" in one)
        share = f"{shares[len(shares) // 2]:.0%}" if shares else "-"
        lines.append(f"| {name} | {rates[len(rates) // 2]:.1f} {unit} ({rates[0]:.1f} to "
                     f"{rates[-1]:.1f}) | {share} |")
    return "\n".join(lines) + "\n"


def bench(out, name, container, *options):
    """One run of `waste bench`, as a row of the table."""
    text = run(WASTE, "bench", container, "--json", "--svg", out / f"{name}.svg", *options)
    (out / f"{name}.json").write_text(text)
    result = json.loads(text)

    def phase(key):
        one = result[key]
        return f"{one['tok_s']:.3g} ({one['tok_s_min']:.3g} to {one['tok_s_max']:.3g})"

    row = (f"| {name} | {phase('prefill')} | {result['prefill_share']:.0%} | {phase('decode')} | "
           f"{result['decode_share']:.0%} | {result['memory_limit_bytes_s'] / 1e9:.1f} GB/s | ")
    together = result.get("together")
    return row + (f"{together['tok_s']:.3g}, {together['gain']:.2f} times one |" if together
                  else "- |")


def model(out, container, resident):
    lines = ["| run | prefill tok/s | of FMA | decode tok/s | of its limit | memory | sessions |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    few = ["--repeats", "3"]
    if resident:
        everything = ["--budget", resident, *few]
        lines.append(bench(out, "resident-512", container, "--prompt-tokens", "512", "--tokens",
                           "64", *everything))
        lines.append(bench(out, "resident-2048", container, "--prompt-tokens", "2048", "--tokens",
                           "16", "--repeats", "1", "--budget", resident))
        lines.append(bench(out, "resident-4096", container, "--prompt-tokens", "4000", "--tokens",
                           "64", "--repeats", "1", "--budget", resident))
        lines.append(bench(out, "one-thread", container, "--prompt-tokens", "64", "--tokens", "32",
                           "--threads", "1", *everything))
    lines.append(bench(out, "streaming", container, "--prompt-tokens", "512", "--tokens", "16",
                       *few))
    lines.append(bench(out, "sessions", container, "--prompt-tokens", "64", "--tokens", "16",
                       "--sessions", "8", "--budget", "4G", "--context", "512", "--repeats", "2"))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("container", help="of Kimi-Linear's shape, for instance")
    parser.add_argument("--out", default="build/bench", help="folder for what is written")
    parser.add_argument("--isa", help="of the kernels [best]")
    parser.add_argument("--resident", metavar="BUDGET",
                        help="a budget that holds all experts, such as 21G [none: not measured]")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    for name, table in (("kernels", lambda: kernels(out, options.isa)),
                        ("model", lambda: model(out, options.container, options.resident))):
        text = table()
        (out / f"{name}.md").write_text(text)
        print(text, flush=True)


if __name__ == "__main__":
    main()
