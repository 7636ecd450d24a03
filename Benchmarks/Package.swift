// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import PackageDescription

let package = Package(
  name: "EventCoreBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "EventCore", path: ".."),
    // The peers. Nothing of them reaches the main package.
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    // The same C structures without Swift, and the machine's floor: futex, cache line.
    .target(
      name: "RawCore",
      dependencies: [.product(name: "CEventCore", package: "EventCore")],
      linkerSettings: [.linkedLibrary("urcu-common", .when(platforms: [.linux]))]),
    // Wraps malloc and its family in the executable that links it.
    .target(name: "AllocationCounter"),
    .executableTarget(
      name: "eventcore-benchmarks",
      dependencies: [
        "RawCore", "AllocationCounter",
        .product(name: "EventCore", package: "EventCore"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "OpenCombine", package: "OpenCombine"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
