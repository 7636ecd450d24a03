// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
@testable import EventCoreNATS
import Foundation

let cores = EventCentral.Core.available

/// How much more the long tests do: 1, or 50 with `EVENTCORE_LONG_TESTS=1`.
let stressFactor = ProcessInfo.processInfo.environment["EVENTCORE_LONG_TESTS"] == nil ? 1 : 50

/// What happened, in order, from any thread.
final class Log<Element: Sendable>: Sendable {
  private let state = Locked<[Element]>([])
  func append(_ element: Element) { state.withLock { $0.append(element) } }
  var entries: [Element] { state.withLock { $0 } }
  var count: Int { state.withLock { $0.count } }

  /// The entries, when there are so many, or after a minute.
  func entries(atLeast count: Int) async -> [Element] {
    _ = await eventually { self.count >= count }
    return entries
  }
}

/// Waits for a condition that no gate can tell. False after two minutes.
func eventually(within limit: Duration = .seconds(120), _ condition: () -> Bool) async -> Bool {
  let deadline = ContinuousClock.now + limit
  while !condition() {
    guard ContinuousClock.now < deadline else { return false }
    try? await Task.sleep(for: .milliseconds(1))
  }
  return true
}

extension NATSBridge {
  static func to(
    _ server: ServerProcess, on central: EventCentral, _ change: (inout Options) -> Void = { _ in }
  ) async throws -> NATSBridge {
    var options = Options()
    options.reconnecting = Reconnecting(first: .milliseconds(5), longest: .milliseconds(50))
    change(&options)
    return try await NATSBridge(.url(server.url), on: central, options: options)
  }
}
