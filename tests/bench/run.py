#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All benchmarks in ten minutes: the kernels beside their limits, and a container from end to end.

    build/release/waste synth kimi-linear-48b kl.waste      (a minute, 19 GB)
    python3 tests/bench/run.py kl.waste --out build/bench

Prints two tables, and what it does meanwhile to stderr. Into the folder of --out it writes them
(kernels.md, model.md), charts (*.svg) and the raw figures (*.json). Nothing else should run
meanwhile. docs/performance.md quotes the tables.
"""

import argparse
import pathlib
import sys

import kernel_runs
import model_runs
from bench_tools import elapsed, progress


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""What of the container is measured:
  everything resident, if the machine has the memory: prefill of 512 (twice), 2,048 and 4,096
  tokens, decode at all of these and after a short prompt, there with one thread too;
  streaming: eight sessions at once beside one alone.

Needs the preset release, built with -DWASTE_TESTS=ON, and libbenchmark-dev.""")
    parser.add_argument("container", nargs="?", help="of Kimi-Linear's shape, for instance")
    parser.add_argument("--out", default="build/bench", help="folder for what is written "
                        "[%(default)s]")
    parser.add_argument("--isa", help="of the kernels, such as avx2 [best]")
    parser.add_argument("--resident", metavar="BUDGET",
                        help="bytes for everything resident, such as 21G [as many as it takes]")
    parser.add_argument("--minutes", type=float, default=10, help="long positions that would end "
                        "later are left out [%(default)s]")
    parser.add_argument("--quick", action="store_true",
                        help="short runs, whose figures mean little: to try this script out")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--kernels-only", action="store_true", help="no container is needed")
    parts.add_argument("--model-only", action="store_true", help="the container alone")
    options = parser.parse_args()
    if not options.container and not options.kernels_only:
        parser.error("name a container, or --kernels-only")
    return options


def main():
    options = parse()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    parts = []
    if not options.model_only:
        parts.append(("kernels", lambda: kernel_runs.measure(out, options.isa, options.quick)))
    if not options.kernels_only:
        parts.append(("model", lambda: model_runs.measure(
            out, options.container, options.resident, options.quick, 60 * options.minutes - 5)))
    for name, measure in parts:
        text = measure()
        (out / f"{name}.md").write_text(text)
        print(text, flush=True)
    progress(f"all done; tables, charts and figures are in {out}")
    print(f"It took {elapsed() / 60:.1f} minutes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
