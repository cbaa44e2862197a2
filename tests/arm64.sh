#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds for aarch64 with a cross compiler and runs the programs that hold its kernels to their
# meaning under qemu-user, on Debian 12. tests/run.sh runs the first of them. Ends with one line
# "N passed, M failed, K skipped".
#   bash tests/arm64.sh [PROGRAM...]    these test programs, e.g. kernel_test, instead of all below
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

programs=(kernel_test unit_base unit_quant unit_model golden_test)
case "${1:-}" in
  "") ;;
  -*) sed -n '7s/^# *//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
  *) programs=("$@") ;;
esac

need_packages "${build_packages[@]}" "${arm64_packages[@]}" python3
readonly results=build/arm64/results
rm -rf "$results"
mkdir -p "$results"

cmake --preset arm64 -DWASTE_TESTS=ON
cmake --build build/arm64 --target "${programs[@]}"
for name in "${programs[@]}"; do
  log="$results/arm64.$name" status=0
  timeout 1800 "${arm64_launcher[@]}" "build/arm64/tests/$name" --report_level=no \
    --color_output=no --logger="HRF,error,stdout:JUNIT,error,$log.xml" || status=$?
  # 201: a case failed, and is counted. Anything else is one failure more.
  [[ $status -eq 0 || $status -eq 201 ]] ||
    printf '<testsuite><testcase name="exit code %s"><failure/></testcase></testsuite>\n' \
      "$status" > "$log.exit.xml"
done
python3 tests/support/summary.py "$results"
