// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import PackageDescription

let package = Package(
  name: "Footprint",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "EventCore", path: "../..")],
  targets: [
    .executableTarget(
      name: "footprint", dependencies: [.product(name: "EventCore", package: "EventCore")])
  ],
  swiftLanguageModes: [.v6]
)
