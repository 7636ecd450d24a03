// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import PackageDescription

let package = Package(
  name: "EventCoreExamples",
  platforms: [.macOS(.v15)],
  products: [
    .executable(name: "eventcore-demo", targets: ["EventCoreDemo"]),
    .executable(name: "eventcore-game", targets: ["EventCoreGame"]),
    .executable(name: "eventcore-top", targets: ["EventCoreTop"]),
    .executable(name: "eventcore-sensors", targets: ["EventCoreSensors"]),
  ],
  traits: [
    .default(enabledTraits: ["URCU"]),
    .trait(
      name: "URCU",
      description: "Builds EventCore with its lock-free core; without it, the locking one alone."),
  ],
  dependencies: [
    // The trait is handed on: `swift build --disable-default-traits` needs no liburcu.
    .package(
      name: "EventCore", path: "..",
      traits: [.trait(name: "URCU", condition: .when(traits: ["URCU"]))]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    // What the demo looks at: the kernel's counters as typed events, and recordings of them.
    .target(
      name: "MachineSamples",
      dependencies: [.product(name: "EventCore", package: "EventCore")]),
    .executableTarget(
      name: "EventCoreDemo",
      dependencies: [
        "FileOptions",
        "MachineSamples",
        "StatisticsSocket",
        "TerminalScreen",
        .product(name: "EventCore", package: "EventCore"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    // The statistics of a central, for other processes on the machine; and the program that shows them.
    .target(
      name: "StatisticsSocket",
      dependencies: [.product(name: "EventCore", package: "EventCore")]),
    .executableTarget(
      name: "EventCoreTop",
      dependencies: [
        "StatisticsSocket",
        .product(name: "EventCore", package: "EventCore"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    // What the game and the demo share: a screen in the terminal, and a check that options name different files.
    .target(name: "TerminalScreen"),
    .target(name: "FileOptions"),
    // A game on one thread: events, a tree, coordinators and a pump.
    .executableTarget(
      name: "EventCoreGame",
      dependencies: [
        "FileOptions",
        "TerminalScreen",
        .product(name: "EventCore", package: "EventCore"),
        .product(name: "EventCoreRecording", package: "EventCore"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    // A library in C and a program in Swift that share one central. Needs the lock-free core.
    .target(
      name: "CSensors",
      dependencies: [
        .product(
          name: "CEventCore", package: "EventCore", condition: .when(traits: ["URCU"]))
      ],
      cSettings: [.define("SENSORS_CORE", .when(traits: ["URCU"]))]),
    .executableTarget(
      name: "EventCoreSensors",
      dependencies: ["CSensors", .product(name: "EventCore", package: "EventCore")]),
    .testTarget(name: "MachineSamplesTests", dependencies: ["MachineSamples"]),
    .testTarget(
      name: "StatisticsSocketTests",
      dependencies: ["StatisticsSocket", .product(name: "EventCore", package: "EventCore")]),
    // A pseudo terminal, for the tests of programs.
    .target(name: "ChildOnTerminal", path: "Tests/ChildOnTerminal"),
    .testTarget(
      name: "EventCoreGameTests",
      dependencies: [
        "ChildOnTerminal", "EventCoreDemo", "EventCoreGame", "TerminalScreen",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "EventCoreRecording", package: "EventCore"),
      ]),
    .testTarget(
      name: "EventCoreTopTests",
      dependencies: [
        "ChildOnTerminal", "EventCoreDemo", "EventCoreTop", "StatisticsSocket",
        .product(name: "EventCore", package: "EventCore"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
