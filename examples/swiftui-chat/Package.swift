// swift-tools-version: 6.0
// SPDX-License-Identifier: Apache-2.0
//
// The SwiftUI chat as a Mac program: `swift run` on a Mac. For iOS an Xcode project takes the same
// files (README.md says how).
import PackageDescription

let package = Package(
  name: "swiftui-chat",
  platforms: [.macOS(.v14), .iOS(.v17)],
  dependencies: [.package(name: "Waste", path: "../../bindings/swift")],
  targets: [
    .executableTarget(
      name: "WasteChat", dependencies: [.product(name: "Waste", package: "Waste")],
      resources: [.copy("PrivacyInfo.xcprivacy")])
  ],
  swiftLanguageModes: [.v6]
)
