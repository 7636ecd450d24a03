// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
@testable import EventCoreNATS
import Foundation
import Testing

let cores = EventCentral.Core.available

/// How much more the long tests do: 1, or 50 with `EVENTCORE_LONG_TESTS=1`.
let stressFactor = ProcessInfo.processInfo.environment["EVENTCORE_LONG_TESTS"] == nil ? 1 : 50

/// Random bytes from a seed, which is printed, and which `EVENTCORE_SEED` sets.
struct SeededBytes {
  private var state: UInt64

  init(_ test: String) {
    state = UInt64(ProcessInfo.processInfo.environment["EVENTCORE_SEED"] ?? "") ?? .random(in: .min ... .max)
    print("\(test): EVENTCORE_SEED=\(state)")
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// Less than so many.
  mutating func bytes(_ most: Int) -> Data {
    Data((0..<Int(next() % UInt64(most))).map { _ in UInt8(truncatingIfNeeded: next()) })
  }

  /// A few of the bytes are others; now and then the end is cut off.
  mutating func mutated(_ data: Data) -> Data {
    var bytes = [UInt8](data)
    for _ in 0...next() % 4 { bytes[Int(next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: next()) }
    if next() % 8 == 0 { bytes.removeLast(Int(next() % UInt64(bytes.count))) }
    return Data(bytes)
  }
}

/// What happened, in order, from any thread.
final class Log<Element: Sendable>: Sendable {
  private let state = State()
  // Used only with its lock held.
  private final class State: @unchecked Sendable {
    let condition = NSCondition()
    var entries: [Element] = []
  }

  func append(_ element: Element) {
    state.condition.withLock {
      state.entries.append(element)
      state.condition.broadcast()
    }
  }
  var entries: [Element] { state.condition.withLock { state.entries } }
  var count: Int { state.condition.withLock { state.entries.count } }

  /// The entries, when there are so many, or after two minutes.
  func entries(atLeast count: Int) async -> [Element] {
    let deadline = Date(timeIntervalSinceNow: 120)
    return await blocking { [state] in
      state.condition.withLock {
        while state.entries.count < count, state.condition.wait(until: deadline) {}
        return state.entries
      }
    }
  }
}

/// Waits for a condition of which nobody tells: a count of a bridge or of the client, or what a server has done, which
/// is another process. So it looks each millisecond. False after two minutes.
func eventually(within limit: Duration = .seconds(120), _ condition: () -> Bool) async -> Bool {
  let deadline = ContinuousClock.now + limit
  while !condition() {
    guard ContinuousClock.now < deadline else { return false }
    try? await Task.sleep(for: .milliseconds(1))
  }
  return true
}

/// Keeps the outbox waiting, until a test lets it go on. One gate for all, as these tests run one after the other.
struct Held: RemoteEvent {
  static let subject = "tests.held"
  static let gate = DispatchSemaphore(value: 0)
  private static let begun = Log<Void>()
  var number = 0

  private enum CodingKeys: CodingKey { case number }
  func encode(to encoder: any Encoder) throws {
    Self.begun.append(())
    Self.gate.wait()
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(number, forKey: .number)
  }

  /// Returns when the outbox of a bridge waits.
  static func hold(_ bridge: NATSBridge) async {
    bridge.publish(Held.self)
    let before = begun.count
    #expect(Held().queue(on: bridge.central) == 1)
    #expect(await begun.entries(atLeast: before + 1).count == before + 1)
  }
}

extension NATSBridge {
  static func to(
    _ server: ServerProcess, on central: EventCentral, _ change: (inout Options) -> Void = { _ in }
  ) async throws -> NATSBridge {
    try await to(server.url, on: central, change)
  }

  static func to(
    _ url: String, on central: EventCentral, _ change: (inout Options) -> Void = { _ in }
  ) async throws -> NATSBridge {
    var options = Options()
    // Not the two seconds of the default: the machine may have other work.
    options.connectTimeout = .seconds(60)
    options.reconnecting = Reconnecting(first: .milliseconds(5), longest: .milliseconds(50))
    change(&options)
    return try await NATSBridge(.url(url), on: central, options: options)
  }
  /// What the client was given of all kinds.
  var messagesOut: UInt64 {
    var (statistics, count): (OpaquePointer?, UInt64) = (nil, 0)
    natsStatistics_Create(&statistics)
    defer { natsStatistics_Destroy(statistics) }
    natsConnection_GetStats(link.connection, statistics)
    natsStatistics_GetCounts(statistics, nil, nil, &count, nil, nil)
    return count
  }
}
