#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares libwaste with the public engines, live: transformers (Kimi-Linear), mlx-lm (Kimi K3),
# tiktoken, and mlx-vlm's chat encoder. Makes a virtual environment in build/oracle-venv, once: a
# second run does not ask the network; with --packages it does nothing else. Ends with one line
#   N passed, M failed, K skipped
# Exit code 0 only if nothing failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/support/packages.sh

readonly venv=build/oracle-venv
readonly python=$venv/bin/python
readonly build=build/release
passed=0 failed=0 skipped=0

say() { printf '[%4d s] oracle: %s\n' "$SECONDS" "$*"; }

finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed -eq 0 && $passed -gt 0 ]]
  exit
}

# fail REASON: nothing more can be run.
fail() {
  say "FAILED: $*"
  failed=$((failed + 1))
  finish
}

# The packages, unless those of these very files are there.
install() {
  local stamp=$venv/installed
  local wanted
  wanted=$(cat tests/oracle/requirements.txt tests/oracle/requirements_no_deps.txt)
  [[ -x $python && -e $stamp && $(< "$stamp") == "$wanted" ]] && return 0
  say "installing packages"
  rm -rf "$venv"
  python3 -c 'import ensurepip' 2> /dev/null || need_packages python3-venv || return 1
  python3 -m venv "$venv" || return 1
  # The build without CUDA, where pip is offered one: it is a tenth of the size.
  "$python" -m pip install --quiet torch==2.13.0+cpu 2> /dev/null || true
  "$python" -m pip install --quiet --requirement tests/oracle/requirements.txt &&
    "$python" -m pip install --quiet --no-deps \
      --requirement tests/oracle/requirements_no_deps.txt &&
    printf '%s\n' "$wanted" > "$stamp"
}

build_programs() {
  say "building"
  need_packages "${build_packages[@]}" || return 1
  cmake --preset release -DWASTE_TESTS=ON > build/oracle-build.log 2>&1 &&
    cmake --build "$build" -j "$(nproc)" \
      --target waste_cli dump_hidden tokenize_file >> build/oracle-build.log 2>&1 || {
    tail -n 20 build/oracle-build.log
    return 1
  }
}

# run NAME COMMAND...: a comparison. What it prints as "NAME: N passed, M failed, K skipped" counts;
# without such a line it is one check, passed if it exits with 0.
run() {
  local name=$1 log=build/oracle-$1.log status=0
  shift
  say "$name"
  "$@" 2>&1 | tee "$log" || status=$?
  local counts
  counts=$(sed -nE "s/^$name: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped\$/\1 \2 \3/p" \
    "$log" | tail -n 1)
  local more_passed=0 more_failed=0 more_skipped=0
  if [[ -n $counts ]]; then
    read -r more_passed more_failed more_skipped <<< "$counts"
    [[ $status -eq 0 || $more_failed -gt 0 ]] || more_failed=1
  elif [[ $status -eq 0 ]]; then
    more_passed=1
  else
    more_failed=1
  fi
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
  skipped=$((skipped + more_skipped))
}

mkdir -p build
export PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 OMP_NUM_THREADS=1
# Beside other work: nothing that takes the lock of the system's packages.
if [[ ${1:-} == --packages ]]; then
  python3 -c 'import ensurepip' 2> /dev/null && install
  exit
fi
install || fail "the packages of tests/oracle/requirements.txt could not be installed"
build_programs || fail "the programs do not build (build/oracle-build.log)"

run compare "$python" tests/oracle/compare.py --build "$build"
run golden "$python" tests/oracle/golden.py check
run tokenizer "$python" tests/oracle/tokenizer/compare.py "$build/tests/tokenize_file"
run chat "$python" tests/oracle/tokenizer/compare_chat.py "$build/tests/tokenize_file"
say "done"
finish
