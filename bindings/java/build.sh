#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles the Java layer with javac alone: classes, and waste-VERSION.jar without a native library.
#
#   bash bindings/java/build.sh [OUT]       OUT: build/bindings/java
#
# JAVA_HOME may name the JDK; otherwise Debian's 17 is taken. Does nothing if OUT is newer than the
# sources, so that a second runtime is tested with the same classes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/build/bindings/java}
jdk=${JAVA_HOME:-$(ls -d /usr/lib/jvm/java-17-openjdk-* | head -n 1)}
version=$(sed -n 's:^  <version>\(.*\)</version>$:\1:p' "$here/pom.xml")

newest=$(find "$here/src/main" "$here/src/generated" "$here/pom.xml" "$here/build.sh" -type f \
  -newer "$out/waste-$version.jar" -print -quit 2> /dev/null || echo none)
[[ -n $newest || ! -e $out/waste-$version.jar ]] || exit 0

rm -rf "$out/classes" "$out/waste-$version.jar"
mkdir -p "$out/classes"
find "$here/src/main/java" "$here/src/generated/java" -name '*.java' > "$out/sources"
"$jdk/bin/javac" -Xlint:all -Werror -Xdoclint:all,-missing --release 11 -encoding UTF-8 \
  -d "$out/classes" "@$out/sources"
# Android's shrinker reads what is below META-INF of a jar.
mkdir -p "$out/classes/META-INF/proguard"
cp "$here/consumer-rules.pro" "$out/classes/META-INF/proguard/ai.waste.pro"
"$jdk/bin/jar" --create --file "$out/waste-$version.jar.part" --module-version "$version" \
  --date=2020-01-01T00:00:00Z -C "$out/classes" .
mv "$out/waste-$version.jar.part" "$out/waste-$version.jar"
