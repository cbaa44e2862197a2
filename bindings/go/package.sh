#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the module as users get it:
#
#   bash bindings/go/package.sh NATIVE OUT
#
#   NATIVE  folder with libwaste_static.a of this machine's kind
#   OUT     folder to make: the module without its tests, and the archive where the tag waste_static
#           looks for it, so that a program needs no libwaste.so. A program uses it with
#           "replace github.com/libwaste/waste/bindings/go => OUT" in its go.mod.
#
# Archives of other platforms go beside it, into internal/cwaste/lib/GOOS_GOARCH.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
native=${1:?"the folder with the native libraries"}
out=${2:?"the folder to make"}

case "$(uname -s)" in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) os=windows ;;
esac
case "$(uname -m)" in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) echo "no archive is linked on $(uname -m); see internal/cwaste/link.go" >&2 && exit 1 ;;
esac

[[ -f $native/libwaste_static.a ]] || { echo "$native has no libwaste_static.a" >&2 && exit 1; }
rm -rf "$out"
mkdir -p "$out/internal/cwaste/lib/${os}_$arch"
for file in "$here"/*.go; do
  [[ $file == *_test.go ]] || cp "$file" "$out/"
done
cp "$here/go.mod" "$here/README.md" "$here/../../LICENSE" "$out/"
cp "$here"/internal/cwaste/*.{go,c,h} "$out/internal/cwaste/"
cp "$native/libwaste_static.a" "$out/internal/cwaste/lib/${os}_$arch/"
