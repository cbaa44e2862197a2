#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the C# binding and its tests below build/bindings/csharp and runs them.
#
#   test.sh RUNTIME NATIVE RESULTS [MODE]
#
#   RUNTIME  mono (NUnit's console) or coreclr (.NET Core 3.1 from PyPI's dotnetcore2; a small
#            runner calls the same tests)
#   NATIVE   folder with libwaste_csharp.so
#   RESULTS  folder for JUnit files bindings.RUNTIME.*.xml
#   MODE     suite (all), asan (NATIVE is a build with AddressSanitizer), stress (10,000 answers)
#
# Environment, asan only: WASTE_ASAN_RUNTIME, the sanitizer's runtime to preload (files, with ':'
# between them), for a NATIVE that GCC did not build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
usage="usage: test.sh mono|coreclr NATIVE RESULTS [suite|asan|stress]"
runtime=${1:?"$usage"} native=$(cd "${2:?"$usage"}" && pwd)
mkdir -p "${3:?"$usage"}"
results=$(cd "$3" && pwd)
mode=${4:-suite}
python=${WASTE_PYTHON:-$root/build/bindings-venv/bin/python} # has dotnetcore2
out=$root/build/bindings/csharp

build_tests() {
  bash "$here/build.sh" "$out"
  mkdir -p "$out"/{tests,raw}
  cp "$out"/lib/Waste.dll "$out"/runtime/*.dll "$out/tests/"
  local nunit facade=/usr/lib/mono/4.5/Facades/netstandard.dll
  nunit=$(echo /usr/lib/cli/nunit.framework-2.6.*/nunit.framework.dll)
  cp "$nunit" "$out/tests/"
  local references=(-r:"$facade" -r:"$nunit" -r:System.Xml.Linq.dll
    -r:System.IO.Compression.dll -r:System.IO.Compression.FileSystem.dll)
  local name
  for name in "$out"/lib/Waste.dll "$out"/runtime/*.dll; do references+=(-r:"$name"); done
  local tests=()
  for name in "$here"/tests/*.cs; do
    [[ $name == */ChildProgram.cs || $name == */Runner.cs ]] || tests+=("$name")
  done
  compile Waste.Tests.dll library "${tests[@]}"
  compile ChildProgram.dll exe "$here/tests/ChildProgram.cs"
  compile Runner.dll exe "$here/tests/Runner.cs"
}

# compile NAME KIND SOURCE...: into tests/, for both runtimes; nothing if it is up to date.
compile() {
  local name=$1 kind=$2 source fresh=1
  shift 2
  for source in "$@" "$out/lib/Waste.dll" "$here/test.sh"; do
    [[ "$out/tests/$name" -nt $source ]] || fresh=0
  done
  [[ $fresh -eq 1 ]] && return
  mcs -langversion:7.2 -warn:4 -warnaserror -debug- -target:"$kind" "${references[@]}" \
    -out:"$out/raw/$name" "$@"
  mono "$out/tools/Retarget.exe" move "$out/raw/$name" "$out/tests/$name"
  cat > "$out/tests/${name%.dll}.runtimeconfig.json" << END
{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
                    "configProperties": {"System.Globalization.Invariant": true}}}
END
}

program_of() { # the program that runs an assembly
  case "$runtime" in
    mono) command -v mono ;;
    coreclr) "$python" -c 'import dotnetcore2.runtime as r; print(r.get_runtime_path())' ;;
    *) echo "$usage" >&2 && exit 2 ;;
  esac
}

# run_coreclr REPORT KIND NAMES, run_mono REPORT KIND NAMES: the tests that -include or -exclude
# leaves of the categories, into a JUnit file.
run_coreclr() {
  "$program" "$out/tests/Runner.dll" "$out/tests/Waste.Tests.dll" "$@"
}

run_mono() {
  local raw status=0
  raw=$(mktemp -d)
  mono /usr/lib/nunit/nunit-console.exe -nologo -noshadow -labels -domain:Single -process:Single \
    -framework:mono-4.0 "$2:$3" -work:"$raw" -result:report.xml "$out/tests/Waste.Tests.dll" ||
    [[ -e $raw/report.xml ]]
  env -u LD_PRELOAD python3 "$here/tests/junit.py" "$raw/report.xml" "$1" || status=1
  rm -rf "$raw"
  return $status
}

# The net8.0 sources against .NET Core 3.1's own assemblies, which have all that those use: the
# loader's tests run with them. Not on Mono, which lacks the types.
run_net8() {
  local framework name references=()
  framework=$(echo "$(dirname "$program")"/shared/Microsoft.NETCore.App/3.1.*)
  for name in System.Private.CoreLib System.Runtime System.Runtime.Extensions System.IO.FileSystem \
    System.Runtime.InteropServices System.Runtime.InteropServices.RuntimeInformation \
    System.Collections; do
    references+=(-r:"$framework/$name.dll")
  done
  rm -rf "$out/net8"
  cp -r "$out/tests" "$out/net8"
  mcs -langversion:7.2 -warn:4 -warnaserror -nowarn:1702 -debug- -target:library -nostdlib \
    -noconfig -d:NET8_0_OR_GREATER "${references[@]}" -out:"$out/net8/Waste.dll" \
    "$here"/src/Waste/*.cs "$here"/src/Waste/Native/*.cs
  "$program" "$out/net8/Runner.dll" "$out/net8/Waste.Tests.dll" \
    "$results/bindings.$runtime.csharp-net8.xml" -include loader
}

build_tests
program=$(program_of)
export WASTE_ROOT=$root WASTE_NATIVE=$native WASTE_MODE=$mode WASTE_RUNTIME=$runtime \
  WASTE_RUNTIME_PROGRAM=$program WASTE_BUILD=$out WASTE_LIBRARY=$native
without=none
[[ $runtime == mono ]] || without=sources
case "$mode" in
  asan)
    without=packages,sources
    gcc_runtime=$(cc -print-file-name=libasan.so):$(cc -print-file-name=libubsan.so)
    LD_PRELOAD=${WASTE_ASAN_RUNTIME:-$gcc_runtime}
    export LD_PRELOAD ASAN_OPTIONS=handle_segv=0,handle_sigbus=0,detect_leaks=0
    ;;
esac
selection=(-exclude "$without")
[[ $mode != stress ]] || selection=(-include stress)
status=0
"run_$runtime" "$results/bindings.$runtime.csharp.xml" "${selection[@]}" || status=1
if [[ $runtime == coreclr && $mode == suite ]]; then run_net8 || status=1; fi
exit $status
