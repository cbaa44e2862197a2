// swift-tools-version: 6.0
// SPDX-License-Identifier: Apache-2.0
//
// A terminal chat over the Waste package of this repository.
import PackageDescription

let package = Package(
  name: "swift-chat",
  platforms: [.macOS(.v13)],
  dependencies: [.package(name: "Waste", path: "../../bindings/swift")],
  targets: [
    .executableTarget(
      name: "swift-chat", dependencies: [.product(name: "Waste", package: "Waste")])
  ],
  swiftLanguageModes: [.v6]
)
