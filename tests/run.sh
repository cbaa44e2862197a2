#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the tests need, builds, runs all of them and ends with one line
#   N passed, M failed, K skipped
# whose counts are test cases of all languages, builds and fuzzers. Exit code 0 only if nothing
# failed. Logs and JUnit files stay in build/results. It does not run the PyTorch oracle: that is
# tests/oracle/run.sh, and .ci/run does both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tests/support/packages.sh

usage() {
  cat << 'END'
Usage: bash tests/run.sh [options]

  --arm64             kernel_test for aarch64 too, by a cross compiler and qemu: 100 s more
  --quick             the release build and its tests only: no bindings, sanitizers or fuzzers
  --fuzz-seconds N    how long each fuzzer runs (3)
  --jobs N            parallel compilations and test programs (the cores of this machine)
  --help              this text

Parts, in this order:
  release   GCC build; unit, kernel, golden and C API tests; the waste program end to end; tidy
  bindings  bindings/conformance/run.sh: every language, beside the parts that follow; without the
            second runtimes java-25 and go-current, for their time
  arm64     with --arm64; tests/arm64.sh has more
  clang     Clang build with AddressSanitizer and UBSan, warnings are errors; all test programs,
            without the cases labelled slow
  fuzz      every fuzzer of the same build
  tsan      GCC build with ThreadSanitizer; the test programs that start threads
END
}

quick=0
arm64=0
fuzz_seconds=3
jobs=$(nproc)
while [[ $# -gt 0 ]]; do
  case "$1" in
    --quick) quick=1 ;;
    --arm64) arm64=1 ;;
    --fuzz-seconds) fuzz_seconds=${2:?"--fuzz-seconds needs a number"} && shift ;;
    --jobs) jobs=${2:?"--jobs needs a number"} && shift ;;
    --help | -h) usage && exit 0 ;;
    *) echo "unknown option $1" >&2 && usage >&2 && exit 2 ;;
  esac
  shift
done

readonly results=build/results
launcher=""
# What of the C API's tests has threads in it; under ThreadSanitizer the others only take minutes.
threaded_capi="library:generation:opening:cpu_list:mini/sessions_*"
threaded_capi+=":session/sessions_*:session/an_evaluation_*:session/freeing_*:session/refused_*"
readonly threaded_capi
readonly threaded="unit_os unit_parallel unit_stream unit_convert unit_engine capi_test"

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# record PART NAME STATUS [REASON]: one check of this script as a JUnit file.
record() {
  local detail=""
  [[ $3 == failed ]] && detail="<failure/>"
  [[ $3 == skipped ]] && detail="<skipped>${4:-}</skipped>"
  printf '<testsuite name="%s"><testcase name="%s">%s</testcase></testsuite>\n' \
    "$1" "$2" "$detail" > "$results/$1.$2.xml"
  say "$1: $2 $3${4:+ ($4)}"
}

# build PART PRESET CONFIGURE-OPTION [TARGET...]: what does not compile is one failed check.
build() {
  local part=$1 preset=$2 option=$3 log=$results/$1.build.log
  shift 3
  say "$part: building"
  if cmake --preset "$preset" "$option" > "$log" 2>&1 &&
    cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"} -- -k 0 >> "$log" 2>&1; then
    record "$part" build passed
  else
    grep -E 'error|Error|FAILED' "$log" | head -n 40 || tail -n 40 "$log"
    record "$part" build failed
  fi
}

# programs PRESET: the test programs that CTest knows of.
# The longest come first, so that none of them is left alone on one core.
programs() {
  ctest --test-dir "build/$1" -N | sed -n 's/^ *Test *#[0-9]*: //p' |
    sed -E 's/^(capi_test|unit_model|golden_test|kernel_test)$/0 \1/; t; s/^/1 /' | sort -s -k 1,1 |
    cut -d ' ' -f 2
}

# run_program PART PRESET NAME: one Boost test program. Its cases are in its JUnit log; a program
# that ends in another way than by reporting its cases is one failed check more.
run_program() {
  local log="$results/$1.$3" status=0 filter=""
  # Cases that compute for long what others touch too; sanitizers would take minutes for them.
  [[ $1 == clang ]] && filter="--run_test=!@slow:!*/a_*_does_not_depend_on_*_on_scalar:!mini_avx2"
  [[ $1 == tsan && $3 == capi_test ]] && filter="--run_test=$threaded_capi"
  [[ $1 == arm64 ]] && filter="--run_test=!*/*_on_scalar"  # the same code as here
  [[ $1 == tsan && $3 == unit_engine ]] && filter="--run_test=!faults"  # not of threads
  timeout 600 $launcher "build/$2/tests/$3" $filter --report_level=no --color_output=no \
    --logger="HRF,error,stdout:JUNIT,error,$log.xml" > "$log.log" 2>&1 || status=$?
  if [[ $status -eq 0 ]]; then
    say "$1: $3 passed"
  else
    say "$1: $3 FAILED (exit code $status)"
    tail -n 30 "$log.log"
    [[ $status -eq 201 ]] || record "$1" "$3-exit" failed  # 201: a case failed, and is counted
  fi
}

# run_programs PART PRESET JOBS NAME...: several at a time, in the order given. In a shell of its
# own, whose children are these programs alone.
run_programs() (
  local part=$1 preset=$2 at_once=$3 name
  shift 3
  for name in "$@"; do
    while [[ $(jobs -rp | wc -l) -ge $at_once ]]; do wait -n || true; done
    if [[ -x build/$preset/tests/$name ]]; then
      run_program "$part" "$preset" "$name" &
    else
      record "$part" "$name" failed "not built"
    fi
  done
  wait
)

run_python() {
  say "$1: running"
  python3 tests/support/run_python.py "$results/$1.xml" "tests/$1" || true
}

# Beside what follows: these tests wait more than they compute, and none of them is short of time.
start_memory() {
  python3 tests/support/run_python.py "$results/memory.xml" tests/system/memory \
    > "$results/memory.log" 2>&1 &
  memory=$!
}

finish_memory() {
  wait "$memory" || true
  cat "$results/memory.log"
  [[ -e $results/memory.xml ]] || record memory run failed "no results"
}

# Beside what follows, for the same reason.
start_bindings() {
  say "bindings: running in the background"
  bash bindings/conformance/run.sh --without c --without java-25 --without go-current \
    --results "$results" --jobs "$jobs" \
    > "$results/bindings.table" 2>&1 &
  bindings=$!
}

finish_bindings() {
  wait "$bindings" || true
  cat "$results/bindings.table"
  compgen -G "$results/bindings.*.xml" > /dev/null || record bindings run failed "no results"
}

run_fuzzer() {
  if bash tests/fuzz/run.sh "$1" "$fuzz_seconds" > "$results/$1.log" 2>&1; then
    record fuzz "$1" passed
  else
    tail -n 40 "$results/$1.log"
    record fuzz "$1" failed
  fi
}

run_fuzzers() (
  local source
  for source in tests/fuzz/*_fuzz.cc; do
    while [[ $(jobs -rp | wc -l) -ge $jobs ]]; do wait -n || true; done
    run_fuzzer "$(basename "$source" .cc)" &
  done
  wait
)

# The NEON kernels alone: the rest of the tests says little about another processor, and is slow.
run_arm64() {
  if ! need_packages "${arm64_packages[@]}" > "$results/arm64.packages.log" 2>&1 ||
    ! command -v aarch64-linux-gnu-g++ > /dev/null ||
    ! command -v "${arm64_launcher[0]}" > /dev/null; then
    record arm64 build skipped "${arm64_packages[*]} cannot be installed here"
    return
  fi
  build arm64 arm64 -DWASTE_TESTS=ON kernel_test
  launcher="${arm64_launcher[*]}"
  run_programs arm64 arm64 "$jobs" kernel_test
  launcher=""
}

# The test programs and fuzzers alone: what else there is costs minutes, and is not run here.
run_clang() {
  local names
  cmake --preset fuzz -DWASTE_TESTS=ON > /dev/null 2>&1 || true  # build reports what is wrong
  names=$(programs fuzz)
  build clang fuzz -DWASTE_TESTS=ON $names $(basename -s .cc tests/fuzz/*_fuzz.cc)
  run_programs clang fuzz "$jobs" $names
}

run_tsan() {
  local names
  cmake --preset tsan -DWASTE_TESTS=ON > /dev/null 2>&1 || true
  names=$(programs tsan | grep -Fx -f <(tr ' ' '\n' <<< "$threaded") || true)
  build tsan tsan -DWASTE_TESTS=ON $names
  # ThreadSanitizer wants its addresses where they are without randomisation.
  setarch -R true 2> /dev/null && launcher="setarch -R"
  run_programs tsan tsan "$jobs" $names
  launcher=""
}

need_packages "${build_packages[@]}" binutils python3 clang-14 libclang-rt-14-dev clang-format-14
rm -rf "$results"
mkdir -p "$results"
export PYTHONDONTWRITEBYTECODE=1

build release release -DWASTE_TESTS=ON
run_programs release release "$jobs" $(programs release)
run_python tidy
run_python system
start_memory
if [[ $quick -eq 0 ]]; then
  start_bindings
  [[ $arm64 -eq 1 ]] && run_arm64
  run_clang
  run_fuzzers
  run_tsan
  finish_bindings
fi
finish_memory
say "done; logs are in $results"
python3 tests/support/summary.py "$results"
