#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the NuGet package where no .NET SDK is, with the netstandard2.0 assembly and the native
# file of this machine (`dotnet pack` of Waste.csproj adds net8.0 and all native files there are).
#
#   package.sh NATIVE OUT    writes OUT/Waste.VERSION.nupkg and prints its path
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
native=${1:?usage: package.sh NATIVE OUT}
mkdir -p "${2:?usage: package.sh NATIVE OUT}"
out=$(cd "$2" && pwd)
build=${WASTE_BUILD:-$root/build/bindings/csharp}

case "$(uname -m)" in
  x86_64) cpu=x64 ;;
  aarch64) cpu=arm64 ;;
  *) echo "no runtime identifier for $(uname -m)" >&2 && exit 1 ;;
esac
bash "$here/build.sh" "$build"

files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
mkdir -p "$files"/{lib/netstandard2.0,runtimes/linux-$cpu/native,build,buildTransitive}
cp "$build"/lib/Waste.{dll,xml} "$files/lib/netstandard2.0/"
strip --strip-unneeded -o "$files/runtimes/linux-$cpu/native/libwaste_csharp.so" \
  "$native/libwaste_csharp.so"
cp "$here/src/Waste/Waste.targets" "$files/build/"
cp "$here/src/Waste/Waste.targets" "$files/buildTransitive/"
cp "$here/README.md" "$root/LICENSE" "$files/"
version=$(sed -n 's:.*<Version>\(.*\)</Version>.*:\1:p' "$here/src/Waste/Waste.csproj")
python3 "$here/tools/pack.py" "$files" "$version" "$out/Waste.$version.nupkg"
echo "$out/Waste.$version.nupkg"
