# SPDX-License-Identifier: Apache-2.0
#
# Sourced by test.sh: what users get. A prefix made by package.sh and a copy of the package in a
# temporary folder, a program there that depends on the copy by path, the code of docs/swift.md, the
# examples. Sees the variables and functions of test.sh.

app=$scripts/app
fresh=$scripts/prefix

# block N: the N-th piece of Swift of the page.
block() {
  awk -v wanted="$1" '/^```swift$/ { inside = ++count == wanted; next } /^```$/ { inside = 0 }
    inside' "$root/docs/swift.md"
}

# The first piece of the page is a whole program; the others are bodies that find a model, a session
# and a file. ChatState.swift is the part of the SwiftUI example that needs no Apple SDK.
write_app() {
  mkdir -p "$app/Sources/app" "$app/Sources/Page"
  cp -r "$here" "$scripts/swift-package"
  cat > "$app/Package.swift" << 'END'
// swift-tools-version: 6.0
import PackageDescription
let package = Package(
  name: "app",
  dependencies: [.package(name: "Waste", path: "../swift-package")],
  targets: [
    .executableTarget(name: "app", dependencies: [.product(name: "Waste", package: "Waste")]),
    .target(name: "Page", dependencies: [.product(name: "Waste", package: "Waste")]),
  ],
  swiftLanguageModes: [.v6]
)
END
  block 1 > "$app/Sources/app/main.swift"
  cp "$root/examples/swiftui-chat/Sources/WasteChat/ChatState.swift" "$app/Sources/Page/"
  {
    printf 'import Foundation\nimport Waste\n'
    local n
    for ((n = 2; ; n++)); do
      [[ -n $(block $n) ]] || break
      echo "func page$n(_ model: WasteModel, _ session: WasteSession, _ file: URL) async throws {"
      block $n
      echo "}"
    done
  } > "$app/Sources/Page/Page.swift"
}

package_layout() {
  bash "$here/package.sh" "$native" "$fresh"
  ls "$fresh/lib/libwaste.so.0" "$fresh/include/waste/module.modulemap"
  [[ $(pkg-config --with-path="$fresh/lib/pkgconfig" --libs waste) == *-lwaste* ]]
  cmp "$fresh/include/waste/waste.h" "$root/capi/include/waste/waste.h"
}

app_builds() {
  write_app
  PKG_CONFIG_PATH=$fresh/lib/pkgconfig build "$app" "$app/.build"
}

app_answers() {
  local said
  said=$(LD_LIBRARY_PATH=$fresh/lib "$app/.build/debug/app" "$root/examples/mini/mini.waste")
  echo "$said"
  [[ $said == *"The capital of Italy is Rome."* ]]
}

# $ORIGIN is among the places where a program of SwiftPM looks for libraries.
app_finds_the_library_beside_it() {
  cp "$fresh"/lib/libwaste.so.0 "$app/.build/debug/"
  local said
  said=$(env -u LD_LIBRARY_PATH "$app/.build/debug/app" "$root/examples/mini/mini.waste")
  [[ $said == *"The capital of Italy is Rome."* ]]
}

chat=$work/chat/debug/swift-chat
chat_builds() { build "$root/examples/swift-chat" "$work/chat"; }

chat_answers() {
  local said
  said=$(printf 'What is the capital of Italy?\n\nWhat is the capital of Japan?\n' |
    LD_LIBRARY_PATH=$prefix/lib "$chat" "$root/examples/mini/mini.waste" 2> /dev/null)
  echo "$said"
  [[ $said == "The capital of Italy is Rome."$'\n'"The capital of Japan is Tokyo." ]]
}

# wait_for FILE TEXT: ten seconds at most.
wait_for() {
  local round
  for ((round = 0; round < 500; round++)); do
    ! grep -q "$2" "$1" 2> /dev/null || return 0
    sleep 0.02
  done
  echo "no $2 in $1: $(head -c 500 "$1")"
  return 1
}

# An answer that takes a minute is stopped by the first Ctrl-C and the chat goes on; one at the
# prompt ends the program.
chat_stops_on_interrupt() {
  local script=$scripts/slow.json out=$scripts/chat.out code=0
  echo '{"answers": [["haha", {"stall_ms": 60000}, "never"], ["well"]]}' > "$script"
  mkfifo "$scripts/keys"
  LD_LIBRARY_PATH=$prefix/lib "$chat" "test:$script" < "$scripts/keys" > "$out" 2>&1 &
  local pid=$!
  exec 3> "$scripts/keys"
  echo x >&3
  wait_for "$out" haha
  kill -INT $pid
  wait_for "$out" stopped
  echo y >&3
  wait_for "$out" '[12] tokens'
  grep -q well "$out"
  kill -INT $pid
  wait $pid || code=$?
  exec 3>&-
  echo "exit code $code"
  [[ $code -eq 130 ]]
}

swiftui_parses() {
  local file
  for file in "$root"/examples/swiftui-chat/Sources/WasteChat/*.swift; do
    swiftc -parse "$file"
  done
}

check package_layout package_layout
check page_and_package_build app_builds
check app_answers app_answers
check app_finds_the_library_beside_it app_finds_the_library_beside_it
check chat_example_builds chat_builds
check chat_example_answers chat_answers
check chat_example_stops_on_interrupt chat_stops_on_interrupt
check swiftui_example_parses swiftui_parses
