// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import PackageDescription

let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

let package = Package(
  name: "EventCoreChat",
  platforms: [.macOS(.v15)],
  products: [.executable(name: "eventcore-chat", targets: ["EventCoreChat"])],
  traits: [
    .default(enabledTraits: ["URCU"]),
    .trait(
      name: "URCU",
      description: "Builds EventCore with its lock-free core; without it, the locking one alone."),
  ],
  dependencies: [
    // The trait is handed on: `swift build --disable-default-traits` needs no liburcu.
    .package(
      name: "EventCore", path: "../..",
      traits: [.trait(name: "URCU", condition: .when(traits: ["URCU"])), "ServiceLifecycle", "Metrics"]),
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
  ],
  targets: [
    .target(
      name: "ChatServer",
      dependencies: [
        .product(name: "EventCore", package: "EventCore"),
        .product(name: "EventCoreServiceLifecycle", package: "EventCore"),
        .product(name: "EventCoreMetrics", package: "EventCore"),
        .product(name: "FlyingFox", package: "FlyingFox"),
        .product(name: "Metrics", package: "swift-metrics"),
        lifecycle, logging,
      ]),
    .executableTarget(
      name: "EventCoreChat",
      dependencies: ["ChatServer", .product(name: "EventCore", package: "EventCore"), lifecycle, logging]),
    .testTarget(
      name: "ChatServerTests",
      dependencies: [
        "ChatServer", "EventCoreChat",
        .product(name: "EventCore", package: "EventCore"),
        .product(name: "FlyingSocks", package: "FlyingFox"),
        lifecycle, logging,
      ]),
  ],
  swiftLanguageModes: [.v6]
)
