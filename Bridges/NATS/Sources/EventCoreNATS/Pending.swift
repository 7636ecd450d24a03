// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// What waits for outcomes, each as long as all others.
///
/// One task watches the limit for all: that which has begun first is over first.
final class Pending<Outcome: Sendable>: Sendable {
  typealias Done = @Sendable (Result<Outcome, any Error>) -> Void
  private struct State {
    var waiting: [UInt64: (done: Done, deadline: ContinuousClock.Instant)] = [:]
    var next: UInt64 = 0
    /// All that have begun before have ended.
    var oldest: UInt64 = 0
    var watch: Task<Void, Never>?
    var hasEnded = false
  }
  private let state = Locked(State())
  private let limit: Duration

  init(within limit: Duration) {
    self.limit = limit
  }

  /// Begins to wait.
  ///
  /// - Parameter done: Gets the outcome, or why there is none, on any thread, once.
  /// - Returns: By which `finish` knows it. Nil if it has ended.
  func begin(_ done: @escaping Done) -> UInt64? {
    let deadline = ContinuousClock.now + limit.bounded
    let number = state.withLock { state -> UInt64? in
      guard !state.hasEnded else { return nil }
      let number = state.next
      state.next += 1
      state.waiting[number] = (done, deadline)
      // Without what the first caller's task carries.
      if state.watch == nil { state.watch = Task.detached { await self.watch() } }
      return number
    }
    if number == nil { done(.failure(NATSBridgeError.closed)) }
    return number
  }

  var count: Int { state.withLock { $0.waiting.count } }

  func isWaiting(_ number: UInt64) -> Bool { state.withLock { $0.waiting[number] != nil } }

  /// The first outcome counts.
  ///
  /// - Returns: Whether it was waited for.
  @discardableResult
  func finish(_ number: UInt64, _ outcome: Result<Outcome, any Error>) -> Bool {
    let one = state.withLock { $0.waiting.removeValue(forKey: number) }
    one?.done(outcome)
    return one != nil
  }

  func end() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      state.watch?.cancel()
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for one in waiting { one.done(.failure(NATSBridgeError.closed)) }
  }

  /// Runs while anything waits, and as long as the last that did might have.
  private func watch() async {
    while true {
      guard let next = endLate(), (try? await Task.sleep(until: next, clock: .continuous)) != nil else { return }
    }
  }

  /// Ends those whose time is over. A function of its own, which releases them: the last reference to a request ends it.
  ///
  /// - Returns: The next deadline, if any waits.
  private func endLate() -> ContinuousClock.Instant? {
    let now = ContinuousClock.now
    var late: [Done] = []
    let next = state.withLock { state -> ContinuousClock.Instant? in
      while state.oldest < state.next {
        if let one = state.waiting[state.oldest] {
          guard one.deadline <= now else { return one.deadline }
          late.append(one.done)
          state.waiting[state.oldest] = nil
        }
        state.oldest += 1
      }
      state.watch = nil
      return nil
    }
    for done in late { done(.failure(EventWaitError.timedOut(limit))) }
    return next
  }
}
