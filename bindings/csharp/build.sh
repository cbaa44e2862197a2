#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles Waste.dll with mcs where no .NET SDK is: one netstandard2.0 assembly for every runtime.
#
#   build.sh OUT     OUT/lib     Waste.dll and Waste.xml
#                    OUT/runtime stand-ins for the NuGet packages that it refers to (tests only)
#                    OUT/tools   Retarget.exe, which moves references to netstandard
#
# Needs mono-mcs, mono-devel (netstandard facade, Mono.Cecil). Does nothing if OUT is up to date.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:?usage: build.sh OUT}
mkdir -p "$out"/{lib,runtime,tools,raw}
out=$(cd "$out" && pwd)

cecil=$(echo /usr/lib/mono/gac/Mono.Cecil/0.11.*/Mono.Cecil.dll)
facade=/usr/lib/mono/4.5/Facades/netstandard.dll
compiler=(mcs -langversion:7.2 -warn:4 -warnaserror -optimize+ -debug-)

# fresh TARGET SOURCE...: TARGET is newer than all of the sources.
fresh() {
  local target=$1 source
  shift
  [[ -e $target ]] || return 1
  for source in "$@"; do [[ $target -nt $source ]] || return 1; done
}

tool=$out/tools/Retarget.exe
if ! fresh "$tool" "$here/tools/Retarget.cs" "${BASH_SOURCE[0]}"; then
  cp "$cecil" "$out/tools/"
  "${compiler[@]}" -r:"$cecil" -out:"$tool" "$here/tools/Retarget.cs"
  mono "$tool" stand-ins "$facade" "$out/runtime"
fi

sources=("$here"/src/Waste/*.cs "$here"/src/Waste/Native/*.cs)
if ! fresh "$out/lib/Waste.dll" "${sources[@]}" "$tool" "$here/src/Waste"; then
  "${compiler[@]}" -target:library -doc:"$out/lib/Waste.xml" -out:"$out/raw/Waste.dll" \
    "${sources[@]}"
  mono "$tool" move "$out/raw/Waste.dll" "$out/lib/Waste.dll"
fi
