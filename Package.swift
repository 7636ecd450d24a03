// swift-tools-version: 6.3
// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import PackageDescription

// What a target of C or Swift sees of the package traits: C by defines, Swift by `#if URCU`. EVC_TRAITS says that the
// defines decide; without it, outside of the package manager, the C core is on.
let traitDefines: [CSetting] = [
  .define("EVC_TRAITS"),
  .define("EVC_URCU", .when(traits: ["URCU"])),
  .define("EVC_LGPL_INLINE", .when(traits: ["LGPLInline"])),
]

// What joins EventCore to a package of the server ecosystem, each behind a trait of its own: a program that turns none
// on neither fetches nor compiles these packages.
func bridge(
  _ trait: String, _ package: String, test kit: String, and more: [Target.Dependency] = [],
  by program: [Target.Dependency] = []
) -> [Target] {
  let own = ["EventCore", product(trait, of: package, trait)] + more
  return [
    .target(name: "EventCore\(trait)", dependencies: own),
    .testTarget(
      name: "EventCore\(trait)Tests",
      dependencies: own + program
        + [.target(name: "EventCore\(trait)"), "EventCoreTestSupport", product(kit, of: package, trait)]),
  ]
}

func product(_ name: String, of package: String, _ trait: String) -> Target.Dependency {
  .product(name: name, package: package, condition: .when(traits: [trait]))
}

let lifecycle = product("ServiceLifecycle", of: "swift-service-lifecycle", "ServiceLifecycle")

// A program that the tests of EventCoreServiceLifecycle start, and send signals.
let serviceProgram = Target.executableTarget(
  name: "EventCoreServiceProgram",
  dependencies: ["EventCoreServiceLifecycle", lifecycle],
  path: "Tests/EventCoreServiceProgram")

let package = Package(
  name: "EventCore",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "EventCore", targets: ["EventCore"]),
    .library(name: "CEventCore", targets: ["CEventCore"]),
    // Events to files, and back.
    .library(name: "EventCoreRecording", targets: ["EventCoreRecording"]),
    // For the tests of programs.
    .library(name: "EventCoreTesting", targets: ["EventCoreTesting"]),
    // For servers: each needs the trait of its name.
    .library(name: "EventCoreServiceLifecycle", targets: ["EventCoreServiceLifecycle"]),
    .library(name: "EventCoreTracing", targets: ["EventCoreTracing"]),
    .library(name: "EventCoreLogging", targets: ["EventCoreLogging"]),
    .library(name: "EventCoreMetrics", targets: ["EventCoreMetrics"]),
    // For programs that come from another library: EventCore, and the names of that library.
    .library(name: "EventDrivenSwift", targets: ["EventDrivenSwift"]),
    .library(name: "EventsTree", targets: ["EventsTree"]),
    .library(name: "Coordinate", targets: ["Coordinate"]),
  ],
  traits: [
    .default(enabledTraits: ["URCU"]),
    .trait(
      name: "URCU",
      description: "The lock-free core in C on userspace RCU; needs liburcu on the machine."),
    .trait(
      name: "LGPLInline",
      description: "Compiles liburcu's read sections into the core: faster, and bound by the LGPL.",
      enabledTraits: ["URCU"]),
    .trait(name: "ServiceLifecycle", description: "EventCoreServiceLifecycle, with swift-service-lifecycle."),
    .trait(name: "Tracing", description: "EventCoreTracing, with swift-distributed-tracing."),
    .trait(name: "Logging", description: "EventCoreLogging, with swift-log."),
    .trait(name: "Metrics", description: "EventCoreMetrics, with swift-metrics."),
  ],
  dependencies: [
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
  ],
  targets: [
    // The folder's `include` is a symbolic link to the top-level one, where C users look for it.
    .target(
      name: "CEventCore",
      cSettings: traitDefines + [.headerSearchPath(".")],
      linkerSettings: [
        .linkedLibrary("urcu-bp", .when(traits: ["URCU"])),
        .linkedLibrary("pthread", .when(platforms: [.linux], traits: ["URCU"])),
      ]),
    // Functions of the Swift runtime and the processor that the language has no word for.
    .target(name: "CSwiftRuntime"),
    .target(name: "EventCore", dependencies: ["CEventCore", "CSwiftRuntime"]),
    .target(name: "EventCoreRecording", dependencies: ["EventCore"]),
    .target(name: "EventCoreTesting", dependencies: ["EventCore"]),
    .target(name: "EventDrivenSwift", dependencies: ["EventCore"]),
    .target(name: "EventsTree", dependencies: ["EventCore"]),
    .target(name: "Coordinate", dependencies: ["EventCore"]),

    // Test suites in C, one function per test, which CEventCoreTests runs and names.
    .target(
      name: "CEventCoreSuite",
      dependencies: ["CEventCore"],
      path: "Tests/CEventCoreSuite",
      cSettings: traitDefines + [.headerSearchPath("../../Sources/CEventCore")]),
    .testTarget(name: "CEventCoreTests", dependencies: ["CEventCoreSuite"]),
    .target(
      name: "EventCoreTestSupport",
      dependencies: ["EventCore"],
      path: "Tests/EventCoreTestSupport"),
    .testTarget(name: "EventCoreTests", dependencies: ["EventCore", "EventCoreTestSupport"]),
    .testTarget(
      name: "EventCoreRecordingTests", dependencies: ["EventCoreRecording", "EventCoreTestSupport"]),
    .testTarget(
      name: "EventCoreTestingTests", dependencies: ["EventCoreTesting", "EventCoreTestSupport"]),
    .testTarget(
      name: "EventDrivenSwiftTests", dependencies: ["EventDrivenSwift", "EventCoreTestSupport"]),
    .testTarget(name: "EventCoreStressTests", dependencies: ["EventCore", "EventCoreTestSupport"]),
    // Compiles every example of the README and the documentation, with the public interface alone.
    .testTarget(
      name: "PublicAPIProbe",
      dependencies: [
        "EventCore", "EventCoreRecording", "EventCoreTesting", "EventDrivenSwift", "EventsTree", "Coordinate",
        "EventCoreTestSupport", "EventCoreServiceLifecycle", "EventCoreTracing", "EventCoreLogging", "EventCoreMetrics",
        lifecycle, product("Tracing", of: "swift-distributed-tracing", "Tracing"),
        product("Logging", of: "swift-log", "Logging"),
      ]),
    // The examples of EventDrivenSwift, as a user in Swift 5 mode has them, and closures that only that mode
    // takes.
    .testTarget(
      name: "PublicAPIProbeSwift5",
      dependencies: [
        "EventCore", "EventDrivenSwift", "EventsTree", "Coordinate", "EventCoreTestSupport",
      ],
      swiftSettings: [.swiftLanguageMode(.v5)]),
  ]
    + [serviceProgram]
    + bridge(
      "ServiceLifecycle", "swift-service-lifecycle", test: "ServiceLifecycleTestKit",
      and: [product("Logging", of: "swift-log", "ServiceLifecycle")], by: ["EventCoreServiceProgram"])
    + bridge("Tracing", "swift-distributed-tracing", test: "InMemoryTracing")
    + bridge("Logging", "swift-log", test: "InMemoryLogging", and: [lifecycle])
    + bridge("Metrics", "swift-metrics", test: "MetricsTestKit", and: [lifecycle]),
  swiftLanguageModes: [.v6]
)
