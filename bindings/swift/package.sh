#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lays out what a Swift package on Linux needs of the native side:
#
#     bash bindings/swift/package.sh NATIVE OUT
#
# NATIVE is the folder with libwaste.so, OUT a prefix that gets lib/libwaste.so*,
# lib/pkgconfig/waste.pc, include/waste/waste.h and include/waste/module.modulemap. SwiftPM finds it
# with PKG_CONFIG_PATH=OUT/lib/pkgconfig, programs with LD_LIBRARY_PATH=OUT/lib (or an rpath, or
# ldconfig). xcframework.sh is the same for Apple platforms.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
native=${1:?"the folder with libwaste.so"}
out=${2:?"the folder to make"}

mkdir -p "$out/lib/pkgconfig" "$out/include/waste"
out=$(cd "$out" && pwd)
rm -f "$out"/lib/libwaste.so*
cp -a "$native"/libwaste.so* "$out/lib/"
cp "$here/Sources/CWaste/waste.h" "$here/Sources/CWaste/module.modulemap" "$out/include/waste/"

version=$(basename "$(readlink -f "$out/lib/libwaste.so")" | sed 's/^libwaste\.so\.//')
[[ $version != *.so* ]] || version=0
cat > "$out/lib/pkgconfig/waste.pc" << END
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: waste
Description: Mixture-of-experts language models larger than memory
Version: $version
Libs: -L\${libdir} -lwaste
Cflags: -I\${includedir}
END
