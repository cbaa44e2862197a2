#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds what users put on their class path or module path:
#
#   bash bindings/java/package.sh NATIVE OUT
#
#   OUT/waste-VERSION.jar            the classes, module ai.waste
#   OUT/waste-VERSION-linux-x64.jar  META-INF/native/linux-x64/libwaste_jni.so
#   OUT/waste-all-VERSION.jar        both in one
#   OUT/waste-VERSION.pom            what Maven wants to know
#
# NATIVE is the folder with libwaste_jni.so for the machine that this runs on.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
native=${1:?"the folder with libwaste_jni.so"}
out=${2:?"the folder for the jars"}
jdk=${JAVA_HOME:-$(ls -d /usr/lib/jvm/java-17-openjdk-* | head -n 1)}
version=$(sed -n 's:^  <version>\(.*\)</version>$:\1:p' "$here/pom.xml")
case "$(uname -m)" in
  x86_64) platform=linux-x64 ;;
  aarch64) platform=linux-arm64 ;;
  *) echo "no platform name for $(uname -m)" >&2 && exit 1 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bash "$here/build.sh" "$work/classes"
mkdir -p "$out" "$work/natives/META-INF/native/$platform"
cp "$native/libwaste_jni.so" "$work/natives/META-INF/native/$platform/"

# An automatic module's name must not be a guess from the file's name, which is that of the classes.
echo "Automatic-Module-Name: ai.waste.natives.${platform//-/.}" > "$work/manifest"
readonly date=--date=2020-01-01T00:00:00Z
cp "$work/classes/waste-$version.jar" "$out/"
"$jdk/bin/jar" --create --file "$out/waste-$version-$platform.jar" --manifest "$work/manifest" \
  "$date" -C "$work/natives" .
cp "$out/waste-$version.jar" "$out/waste-all-$version.jar"
"$jdk/bin/jar" --update --file "$out/waste-all-$version.jar" "$date" -C "$work/natives" META-INF
cp "$here/pom.xml" "$out/waste-$version.pom"
