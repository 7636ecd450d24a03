// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What happened, in order, from any thread; and a way to wait for the n-th thing.
public final class Log<Element: Sendable>: Sendable {
  private struct State {
    var entries: [Element] = []
    var awaited: (count: Int, gate: Gate)?
  }
  private let state = Guarded(State())

  public init() {}

  public func append(_ element: Element) {
    let gate = state.withLock { state -> Gate? in
      state.entries.append(element)
      guard let awaited = state.awaited, state.entries.count >= awaited.count else { return nil }
      state.awaited = nil
      return awaited.gate
    }
    gate?.open()
  }

  public var entries: [Element] { state.withLock { $0.entries } }

  /// Waits until the log has at least `count` entries, and returns them all. One waiter at a time.
  public func entries(atLeast count: Int) -> [Element] {
    let gate = Gate()
    let isThere = state.withLock { state in
      if state.entries.count < count { state.awaited = (count, gate) }
      return state.entries.count >= count
    }
    if !isThere { gate.pass() }
    return entries
  }

  /// Empties the log and returns what it held.
  public func take() -> [Element] {
    state.withLock { state in
      defer { state.entries.removeAll(keepingCapacity: true) }
      return state.entries
    }
  }
}

extension Log<Int> {
  /// As `append`, but 0, the first of a backlog, says that it has begun, and then waits for the gate: the others wait
  /// behind it.
  public func append(_ number: Int, heldUpInFirst gate: Gate, _ began: Gate) {
    if number == 0 {
      began.open()
      gate.pass()
    }
    append(number)
  }
}
