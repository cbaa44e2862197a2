#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs one fuzzer of the fuzz preset for some seconds:
#   bash tests/fuzz/run.sh NAME [SECONDS]
# It starts from the inputs in tests/fuzz/corpus/NAME, where there are any, and keeps what it finds
# in build/fuzz/corpus/NAME. A crash leaves its input in build/fuzz/crashes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

name=${1:?"usage: bash tests/fuzz/run.sh NAME [SECONDS]"}
seconds=${2:-60}
found=build/fuzz/corpus/$name
seeds=tests/fuzz/corpus/$name
mkdir -p "$found" build/fuzz/crashes
[[ -d $seeds ]] || seeds=""
exec "build/fuzz/tests/$name" -max_total_time="$seconds" -seed=1 -timeout=10 -rss_limit_mb=2048 \
  -artifact_prefix=build/fuzz/crashes/"$name"- -print_final_stats=1 "$found" ${seeds:+"$seeds"}
