#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds core for Windows with MinGW-w64 and runs the unit tests of `base` and `os` under Wine, on
# Debian 12; no part of tests/run.sh. Ends with one line "N passed, M failed, K skipped".
#   bash tests/windows.sh [--all]    --all: those of `container` and `engine` too, some minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

programs=(unit_base unit_os)
case "${1:-}" in
  "") ;;
  --all) programs+=(unit_container unit_engine) ;;
  *) sed -n '4,6s/^# *//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac

need_packages "${build_packages[@]}" g++-mingw-w64-x86-64-posix wine64 python3
readonly results=build/windows/results
rm -rf "$results"
mkdir -p "$results"
# Wine's settings and its C: drive; what tests write to Windows' temporary folder goes there.
export WINEPREFIX="$PWD/build/windows/wine" WINEDEBUG=-all
wine=$(command -v wine64 || echo /usr/lib/wine/wine64)

cmake --preset windows -DWASTE_TESTS=ON
cmake --build build/windows --target "${programs[@]}"
for name in "${programs[@]}"; do
  log="$results/windows.$name" status=0
  # Wine makes its C: drive on the first run, which takes half a minute.
  timeout 900 "$wine" "build/windows/tests/$name.exe" --report_level=no --color_output=no \
    --logger="HRF,error,stdout:JUNIT,error,$log.xml" || status=$?
  # 201: a case failed, and is counted. Anything else is one failure more.
  [[ $status -eq 0 || $status -eq 201 ]] ||
    printf '<testsuite><testcase name="exit code %s"><failure/></testcase></testsuite>\n' \
      "$status" > "$log.exit.xml"
done
python3 tests/support/summary.py "$results"
