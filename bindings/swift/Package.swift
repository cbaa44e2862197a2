// swift-tools-version: 6.0
// SPDX-License-Identifier: Apache-2.0
//
// The Swift package of WASTE. On Linux the native library is a system library that pkg-config
// finds: bindings/swift/package.sh makes the folder, PKG_CONFIG_PATH names it. On Apple platforms
// it is CWaste.xcframework beside this file, which xcframework.sh builds on a Mac;
// WASTE_SYSTEM_LIBRARY=1 takes pkg-config there too.
import PackageDescription

let systemLibrary = Target.systemLibrary(name: "CWaste", pkgConfig: "waste")
#if os(macOS)
  let native =
    Context.environment["WASTE_SYSTEM_LIBRARY"] == nil
    ? Target.binaryTarget(name: "CWaste", path: "CWaste.xcframework") : systemLibrary
#else
  let native = systemLibrary
#endif

let package = Package(
  name: "Waste",
  platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .visionOS(.v1)],
  products: [.library(name: "Waste", targets: ["Waste"])],
  targets: [
    native,
    .target(name: "Waste", dependencies: ["CWaste"]),
    .executableTarget(name: "waste-probe", dependencies: ["Waste"], path: "Tests/WasteProbe"),
    .testTarget(name: "WasteTests", dependencies: ["Waste", "waste-probe"]),
  ],
  swiftLanguageModes: [.v6]
)
