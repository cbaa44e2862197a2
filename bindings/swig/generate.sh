#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the wrappers of all four languages from waste.i over the C header, with SWIG 4.1. They are
# committed, because package managers need them there, so this runs when the header changes.
#
#   bash bindings/swig/generate.sh          writes them into bindings/
#   bash bindings/swig/generate.sh --check  compares with what is there; exit code 1 if it differs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/support/packages.sh

readonly include=capi/include
need_packages swig python3 > /dev/null
version=$(swig -version | sed -n 's/^SWIG Version //p')
if [[ $version != 4.1.* ]]; then
  echo "SWIG $version: the wrappers are made by 4.1, and another version writes other ones" >&2
  exit 1
fi

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# generate LANGUAGE OUTDIR WRAPPER OPTION...: warnings are errors.
generate() {
  local language=$1 outdir=$made/$2 wrapper=$made/$3
  shift 3
  mkdir -p "$outdir" "$(dirname "$wrapper")"
  swig -Wall -Werror "-$language" "$@" -Ibindings/swig -I"$include" -outdir "$outdir" \
    -o "$wrapper" bindings/swig/waste.i
}

generate java java/src/generated/java/ai/waste java/native/waste_wrap.c -package ai.waste
# SWIG has no option for this one, and it would be public in a package that people see.
sed -i 's/^public interface/interface/' \
  "$made/java/src/generated/java/ai/waste/WasteNativeConstants.java"
generate csharp csharp/src/Waste/Native csharp/native/waste_wrap.c -namespace Waste.Native \
  -dllimport waste_csharp -DSWIG_CSHARP_NO_EXCEPTION_HELPER -DSWIG_CSHARP_NO_STRING_HELPER
generate go go/internal/cwaste go/internal/cwaste/cwaste_wrap.c
cp "$include/waste/waste.h" "$made/go/internal/cwaste/"

# SWIG has no Swift backend: its parser reads the interface, and swiggen.py writes the Swift.
mkdir -p "$made/swift/Sources/Waste/Generated" "$made/swift/Sources/CWaste"
swig -Wall -Werror -xml -Ibindings/swig -I"$include" -o "$made/waste.xml" bindings/swig/waste.i
python3 bindings/swig/swiggen.py "$made/waste.xml" \
  > "$made/swift/Sources/Waste/Generated/WasteRaw.swift"
cp "$include/waste/waste.h" "$made/swift/Sources/CWaste/"
rm "$made/waste.xml"

# SWIG is content with types that it wraps uselessly; those are named like this.
if grep -rnE 'SWIGTYPE_p_|\*int\b' --include=*.java --include=*.cs --include=*.go "$made"; then
  echo "a type of the header has no typemap in bindings/swig" >&2
  exit 1
fi

status=0
while read -r file; do
  if [[ ${1:-} == --check ]]; then
    cmp "$made/$file" "bindings/$file" || status=1
  else
    install -D -m 644 "$made/$file" "bindings/$file"
  fi
done < <(cd "$made" && find . -type f | sed 's|^\./||' | sort)
exit "$status"
