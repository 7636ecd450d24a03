// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import PackageDescription

let package = Package(
  name: "EventCoreNATS",
  platforms: [.macOS(.v15)],
  products: [
    .library(name: "EventCoreNATS", targets: ["EventCoreNATS"]),
    .executable(name: "eventcore-weather", targets: ["WeatherNetwork"]),
    .executable(name: "eventcore-nats-figures", targets: ["BridgeFigures"]),
  ],
  traits: [
    .default(enabledTraits: ["URCU"]),
    .trait(
      name: "URCU",
      description: "Builds EventCore with its lock-free core; without it, the locking one alone."),
    .trait(
      name: "Tracing",
      description: "Tests that traces go on at other machines, with EventCoreTracing and swift-distributed-tracing."),
  ],
  dependencies: [
    // The trait is handed on: `swift build --disable-default-traits` needs no liburcu.
    .package(
      name: "EventCore", path: "../..",
      traits: [
        .trait(name: "URCU", condition: .when(traits: ["URCU"])),
        .trait(name: "Tracing", condition: .when(traits: ["Tracing"])),
      ]),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
  ],
  targets: [
    // The C client of NATS, as the system has it.
    .systemLibrary(
      name: "CNATS", pkgConfig: "libnats",
      providers: [.apt(["libnats-dev"]), .brew(["cnats"])]),
    .target(
      name: "EventCoreNATS",
      dependencies: ["CNATS", .product(name: "EventCore", package: "EventCore")]),
    // The example: three processes.
    .executableTarget(
      name: "WeatherNetwork",
      dependencies: ["EventCoreNATS", .product(name: "EventCore", package: "EventCore")]),
    // The bridge beside the client in C alone.
    .executableTarget(
      name: "BridgeFigures",
      dependencies: ["CNATS", "EventCoreNATS", .product(name: "EventCore", package: "EventCore")]),
    .testTarget(
      name: "EventCoreNATSTests",
      dependencies: [
        "EventCoreNATS", "CNATS", .product(name: "EventCore", package: "EventCore"),
        .product(name: "EventCoreTracing", package: "EventCore", condition: .when(traits: ["Tracing"])),
        .product(
          name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Tracing"])),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
