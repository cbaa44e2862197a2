#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and runs the tests of the Swift binding:
#
#     bash bindings/swift/test.sh swift NATIVE RESULTS [suite|asan|tsan|stress]
#
# NATIVE is the absolute path of the folder with libwaste.so; RESULTS gets JUnit files
# bindings.swift.*.xml (another name than swift: WASTE_REPORT). suite also builds the package, the
# examples and the code of docs/swift.md from scratch. asan expects a libwaste with AddressSanitizer
# and preloads WASTE_ASAN_RUNTIME (files, separated by ':'; GCC's libasan and libubsan); tsan puts
# Swift's code, not the library's, under ThreadSanitizer. Everything is built below
# build/bindings/swift. Exit code 0 only if all passed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
runtime=${1:?"the runtime: swift"}
native=${2:?"the folder with libwaste.so"}
results=${3:?"the folder for results"}
mode=${4:-suite}
readonly runtime native mode name=${WASTE_REPORT:-$runtime}
mkdir -p "$results"
results=$(cd "$results" && pwd)
work=$root/build/bindings/swift
scratch=$work/tests
options=(--build-tests)
if [[ $mode == tsan ]]; then
  scratch=$work/tsan
  options+=(--sanitize=thread)
elif [[ $mode == asan ]]; then
  # What Clang links leaves the sanitizer's symbols to the program, and this one has them preloaded.
  options+=(-Xlinker --unresolved-symbols=ignore-in-shared-libs)
fi
prefix=$work/prefix
status=0
scripts=$(mktemp -d)
trap 'rm -rf "$scripts"' EXIT

[[ $runtime == swift ]] || { echo "no runtime $runtime; there is swift" >&2 && exit 2; }
export PATH=$PATH:/opt/swift/usr/bin

# record NAME STATUS [DETAIL]: one check of this script as a JUnit file.
record() {
  local inner=""
  [[ $2 == passed ]] || inner="<$2>$(sed 's/&/\&amp;/g; s/</\&lt;/g' <<< "${3:-}")</$2>"
  echo "<testsuite name=\"swift\"><testcase classname=\"Packages\" name=\"$1\">$inner" \
    "</testcase></testsuite>" > "$results/bindings.$name.$1.xml"
  echo "$1: $2"
  [[ $2 != failure ]] || status=1
}

# check NAME COMMAND...: a test that is a command; its output is shown if it fails.
check() {
  local log code
  set +e
  log=$(set -e && "${@:2}" 2>&1)
  code=$?
  set -e
  if [[ $code -eq 0 ]]; then record "$1" passed; else
    echo "$log" | tail -n 40
    record "$1" failure "$(tail -n 20 <<< "$log" | tr -cd '[:print:]\n')"
  fi
}

build() { # PACKAGE SCRATCH [OPTION...]
  swift build --disable-sandbox --package-path "$1" --scratch-path "$2" \
    -Xswiftc -warnings-as-errors "${@:3}"
}

# Libraries that are not ours: another ABI number, other sizes of structs. Same names, same version.
make_stubs() {
  local kind number symbol
  for kind in 99 sizes; do
    mkdir -p "$work/stubs/$kind"
    number=0
    [[ $kind != 99 ]] || number=99
    {
      echo "int waste_abi_version(void) { return $number; }"
      while read -r symbol; do
        [[ $symbol == waste_abi_version ]] || echo "long $symbol(void) { return 0; }"
      done < "$root/capi/exports.txt"
    } > "$scripts/$kind.c"
    cc -shared -fPIC -Wl,-soname,libwaste.so.0 -Wl,--version-script="$root/capi/waste.map" \
      -o "$work/stubs/$kind/libwaste.so.0" "$scripts/$kind.c"
  done
}

# Environment for the engine under AddressSanitizer; leaks count, but for one of Foundation's own.
sanitizer() {
  echo "leak:Foundation7Process" > "$scripts/leaks"
  local gcc
  gcc=$(cc -print-file-name=libasan.so):$(cc -print-file-name=libubsan.so)
  echo "LD_PRELOAD=${WASTE_ASAN_RUNTIME:-$gcc}"
  echo "ASAN_OPTIONS=detect_leaks=1:handle_segv=0:quarantine_size_mb=16"
  echo "LSAN_OPTIONS=suppressions=$scripts/leaks:print_suppressions=0"
}

run_tests() {
  local log=$scripts/tests.log events=$scripts/events.jsonl code=0 extra=() filter=()
  [[ $mode != asan ]] || mapfile -t extra < <(sanitizer)
  [[ $mode != stress ]] || filter=(--filter shortGenerationsLeaveMemoryFlat)
  env "${extra[@]}" LD_LIBRARY_PATH="$prefix/lib" WASTE_TEST_ROOT="$root" \
    WASTE_TEST_PROBE="$scratch/debug/waste-probe" WASTE_TEST_STUBS="$work/stubs" \
    WASTE_TEST_MODE="$mode" timeout 600 "$scratch/debug/WastePackageTests.xctest" \
    --testing-library swift-testing --event-stream-output-path "$events" \
    --event-stream-version 0 "${filter[@]}" > "$log" 2>&1 || code=$?
  grep -vE '^[◇✔] ' "$log" || true
  python3 "$here/junit.py" "$events" "$results/bindings.$name.tests.xml" || status=1
  if [[ $code -eq 0 ]]; then record process_of_the_tests passed; else
    record process_of_the_tests failure "exit code $code"
  fi
}

rm -f "$results/bindings.$name".*.xml
bash "$here/package.sh" "$native" "$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
make_stubs
if build "$here" "$scratch" "${options[@]}" > "$scripts/build.log" 2>&1; then
  run_tests
else
  grep -E 'error|warning' -A 5 "$scripts/build.log" | head -n 60 || tail -n 40 "$scripts/build.log"
  record build failure "$(grep -m 5 error "$scripts/build.log" | tr -cd '[:print:]\n')"
fi
[[ $mode != suite ]] || source "$here/Tests/packages.sh"
exit "$status"
