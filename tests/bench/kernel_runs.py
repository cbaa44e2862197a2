# SPDX-License-Identifier: Apache-2.0
"""The kernels' part of run.py: kernel_bench as a table and a chart, in about two minutes."""

import re
import statistics

from bar_chart import Bar, BarChart
from bench_tools import BUILD, machine, median_text, progress, run_json

KERNELS = BUILD / "tests/bench/kernel_bench"
# What of the kernels is told: a regular expression.
SHOWN = (r"(trunk/(Q4G|Q8G)/batch:(1|512)|trunk_words/.*/batch:(32|128)|split|table|build|"
         r"expert/.*/batch:(1|3|16|64|256)|expert_words/.*/batch:(3|16|64|256)|"
         "expert_plain|delta|mla)")
# Without VBMI there are no look-up tables of bytes: what one row of AVX2 gains over a plain loop.
SHOWN_AVX2 = r"(expert/(3|packed6)/batch:1/|expert_plain)"
MORE = {"G weights/s": "G weights/s", "us/row": "us a row", "ms": "ms a layer"}


def kernel_bench(path, isa, shown, quick):
    """Context, and {name: repeats}."""
    progress(f"kernels, {isa or 'best'} ISA")
    repeats, seconds = (2, 0.01) if quick else (5, 0.1)
    choice = ["--isa", isa] if isa else []
    result = run_json(path, KERNELS, *choice, f"--benchmark_filter={shown}",
                      f"--benchmark_repetitions={repeats}", f"--benchmark_min_time={seconds}",
                      "--benchmark_format=json")
    runs = {}
    for one in result["benchmarks"]:
        if one.get("error_occurred"):
            progress(f"{one['run_name']} is left out: {one['error_message']}")
        elif one["run_type"] == "iteration":
            runs.setdefault(one["run_name"].replace("/real_time", ""), []).append(one)
    return result["context"], runs


def middle(repeats, key):
    return statistics.median(one[key] for one in repeats)


def rate_text(repeats):
    unit = "GB/s" if "GB/s" in repeats[0] else "GFLOP/s"
    return f"{median_text([one[unit] for one in repeats])} {unit}"


def rows(runs):
    for name, repeats in runs.items():
        share = f"{middle(repeats, 'share'):.0%}" if "share" in repeats[0] else "-"
        more = [f"{middle(repeats, key):.3g} {unit}" for key, unit in MORE.items()
                if key in repeats[0]]
        yield f"| {name} | {rate_text(repeats)} | {share} | {', '.join(more) or '-'} |"


def limits_text(context):
    def of(key):
        return float(context[key])
    return (f"ISA {context['isa']}; memory {of('memory_gb_s'):.1f} GB/s with one thread, "
            f"{of('memory_all_gb_s'):.1f} with all; f32 {of('fma_gflops'):.0f} GFLOP/s, bf16 "
            f"{of('bf16_gflops'):.0f} and words {of('word_gops'):.0f} a thread; look-ups "
            f"{of('lookups_g_s'):.1f} G/s a thread")


def gains(runs):
    """One row of an expert without look-up tables of bytes, beside the plain loop."""
    for codec in ("3", "packed6"):
        fast = runs.get(f"expert/{codec}/batch:1/threads:1")
        plain = runs.get(f"expert_plain/{codec}")
        if fast and plain:
            gain = middle(fast, "G weights/s") / middle(plain, "G weights/s")
            yield f"expert/{codec}/batch:1 is {gain:.2f} times as fast as expert_plain/{codec}."


def chart(context, runs):
    picture = BarChart("Kernels: share of the limit that binds",
                       [machine(), *limits_text(context).split("; "), "one dot a repeat"])
    groups = {}
    for name, repeats in runs.items():
        if "share" in repeats[0]:
            groups.setdefault(re.split(r"[/_]", name)[0], []).append(
                Bar(name, middle(repeats, "share"), rate_text(repeats), limit=1.0,
                    points=tuple(one["share"] for one in repeats)))
    for name, bars in groups.items():
        picture.add(name, bars, percent=True)
    return picture.text()


def table(runs):
    return ["| kernel | rate, median (spread) | of its limit | that is |", "|---|---:|---:|---:|",
            *rows(runs)]


def measure(out, isa, quick):
    """The tables, as Markdown; kernels.json and kernels.svg are written beside."""
    context, runs = kernel_bench(out / "kernels.json", isa, SHOWN, quick)
    (out / "kernels.svg").write_text(chart(context, runs))
    lines = [f"{machine()}. {limits_text(context)}.", "", *table(runs), "", *gains(runs)]
    if not isa and context["isa"].startswith("avx512"):
        _, runs = kernel_bench(out / "kernels_avx2.json", "avx2", SHOWN_AVX2, quick)
        lines += ["", "With `--isa avx2`:", "", *table(runs), "", *gains(runs)]
    return "\n".join(lines) + "\n"
