#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds CWaste.xcframework beside Package.swift, and its zip with the checksum for a release:
#
#     bash bindings/swift/xcframework.sh
#
# On a Mac with Xcode, CMake, Ninja, nlohmann-json and CLI11. Slices: macOS and the iOS simulator
# for arm64 and x86_64, iOS for arm64. NOT RUN where this repository is tested: there is no Mac.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/xcframework
readonly macos_minimum=13.0 ios_minimum=16.0

mkdir -p "$work"
sed 's/^/_/' "$root/capi/exports.txt" > "$root/build/xcframework/exports.txt"

# build_arch NAME SDK SYSTEM MINIMUM ARCH: the library of one architecture. Linked here, because the
# options that CMakeLists.txt gives the linker are GNU's.
build_arch() {
  local out=$work/$1-$5 sysroot target
  sysroot=$(xcrun --sdk "$2" --show-sdk-path)
  target=$5-apple-${2/macosx/macos}$4
  [[ $2 != iphoneos ]] || target=$5-apple-ios$4
  [[ $2 != iphonesimulator ]] || target=$5-apple-ios$4-simulator
  cmake -S "$root" -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWASTE_TESTS=OFF \
    -DCMAKE_SYSTEM_NAME="$3" -DCMAKE_OSX_SYSROOT="$sysroot" -DCMAKE_OSX_ARCHITECTURES="$5" \
    -DCMAKE_OSX_DEPLOYMENT_TARGET="$4"
  local archives
  archives=$(ninja -C "$out" -t targets all | sed -n 's/^\(core\/.*\.a\): .*/\1/p')
  # shellcheck disable=SC2046,SC2086  # CMake's names have no blanks
  cmake --build "$out" --target waste_objects $archives
  # shellcheck disable=SC2046
  xcrun --sdk "$2" clang++ -target "$target" -isysroot "$sysroot" -dynamiclib -Wl,-dead_strip \
    -install_name @rpath/CWaste.framework/CWaste \
    -Wl,-exported_symbols_list,"$root/build/xcframework/exports.txt" -o "$out/CWaste" \
    $(find "$out/capi" -name '*.o') $(find "$out/core" -name '*.a')
}

# framework NAME PLATFORM MINIMUM ARCH...: a framework of the architectures' libraries. A Mac's has
# versions, a phone's is flat.
framework() {
  local name=$1 platform=$2 minimum=$3 inside
  shift 3
  local top=$work/$name/CWaste.framework resources
  rm -rf "$top"
  inside=$top resources=$top
  if [[ $platform == MacOSX ]]; then
    inside=$top/Versions/A resources=$top/Versions/A/Resources
  fi
  mkdir -p "$inside/Headers" "$inside/Modules" "$resources"
  local libraries=()
  for arch in "$@"; do libraries+=("$work/$name-$arch/CWaste"); done
  lipo -create "${libraries[@]}" -output "$inside/CWaste"
  cp "$here/Sources/CWaste/waste.h" "$inside/Headers/"
  printf 'framework module CWaste [system] {\n  header "waste.h"\n  export *\n}\n' \
    > "$inside/Modules/module.modulemap"
  cp "$root/examples/swiftui-chat/Sources/WasteChat/PrivacyInfo.xcprivacy" "$resources/"
  plist "$platform" "$minimum" > "$resources/Info.plist"
  if [[ $platform == MacOSX ]]; then
    ln -s A "$top/Versions/Current"
    for part in CWaste Headers Modules Resources; do
      ln -s "Versions/Current/$part" "$top/$part"
    done
  fi
  # The two places that name the oldest system must agree, or the App Store refuses the program.
  vtool -show-build "$inside/CWaste" | grep -q "minos $minimum"
}

plist() { # PLATFORM MINIMUM
  local key=MinimumOSVersion
  [[ $1 != MacOSX ]] || key=LSMinimumSystemVersion
  cat << END
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN"
 "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>CFBundleExecutable</key><string>CWaste</string>
  <key>CFBundleIdentifier</key><string>ai.waste.CWaste</string>
  <key>CFBundleInfoDictionaryVersion</key><string>6.0</string>
  <key>CFBundleName</key><string>CWaste</string>
  <key>CFBundlePackageType</key><string>FMWK</string>
  <key>CFBundleShortVersionString</key><string>0.1.0</string>
  <key>CFBundleVersion</key><string>1</string>
  <key>CFBundleSupportedPlatforms</key><array><string>$1</string></array>
  <key>$key</key><string>$2</string>
</dict>
</plist>
END
}

for arch in arm64 x86_64; do
  build_arch macos macosx Darwin "$macos_minimum" "$arch"
  build_arch simulator iphonesimulator iOS "$ios_minimum" "$arch"
done
build_arch ios iphoneos iOS "$ios_minimum" arm64
framework macos MacOSX "$macos_minimum" arm64 x86_64
framework simulator iPhoneSimulator "$ios_minimum" arm64 x86_64
framework ios iPhoneOS "$ios_minimum" arm64

rm -rf "$here/CWaste.xcframework" "$here/CWaste.xcframework.zip"
xcodebuild -create-xcframework -output "$here/CWaste.xcframework" \
  -framework "$work/macos/CWaste.framework" -framework "$work/ios/CWaste.framework" \
  -framework "$work/simulator/CWaste.framework"
ditto -c -k --keepParent "$here/CWaste.xcframework" "$here/CWaste.xcframework.zip"
swift package --package-path "$here" compute-checksum "$here/CWaste.xcframework.zip"
