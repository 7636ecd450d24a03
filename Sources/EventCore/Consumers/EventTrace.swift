// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// What ran in a deterministic central: which receiver took which event, in order. Two runs that did the same have
/// equal traces. What the tasks of `async` listeners and loops over sequences take is not in it: no run takes it.
///
/// ```swift
/// let first = play(seed: 7), second = play(seed: 7)   // each returns the trace of its world
/// #expect(first == second, "\(first.firstDifference(from: second) ?? "")")
/// ```
///
/// ``EventCentral/trace(_:)`` makes one.
public struct EventTrace: Sendable, Equatable, CustomStringConvertible {
  /// One event that a receiver took, whether or not its interests skipped it then. A job of an actor, and an event that
  /// is handed over to an event thread, are entries of their own, of the type `EventCore.ConsumerJob`.
  public struct Entry: Sendable, Equatable, CustomStringConvertible {
    /// The place in the trace, from 0.
    public let sequence: Int
    /// When the receiver took it, on the central's clock.
    public let time: DispatchTime
    /// The type of the event, with its module. Private types are named without the file they are private to.
    public let type: String
    /// The event thread, the listener thread, the queue or the pump. Further ones of one name have a number.
    public let receiver: String
    /// How it was dispatched.
    public let method: EventDispatchMethod
    /// With which priority.
    public let priority: EventPriority

    /// One line: place, time, type, receiver and lane.
    public var description: String {
      let (seconds, rest) = time.uptimeNanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
      let digits = String(rest)
      let fraction = String(repeating: "0", count: 9 - digits.count) + digits
      return "\(sequence)  \(seconds).\(fraction) s  \(type) -> \(receiver), \(method) \(priority)"
    }
  }

  /// What ran, in order.
  public let entries: [Entry]

  /// The entries, one a line.
  public var description: String { entries.map(\.description).joined(separator: "\n") }

  /// Describes where this trace and another part: the first entries that differ, and what came before them.
  ///
  /// - Parameters:
  ///   - other: The other trace.
  ///   - context: How many entries to show that both have, right before the difference.
  /// - Returns: A few lines; nil if the traces are equal.
  ///
  /// **Complexity**: O(entries).
  public func firstDifference(from other: EventTrace, context: Int = 3) -> String? {
    guard self != other else { return nil }
    let common = zip(entries, other.entries).prefix { $0 == $1 }.count
    let before = entries[max(0, common - max(0, context))..<common].map { "    \($0)" }
    let lines = [self, other].map { trace in
      common < trace.entries.count ? "\(trace.entries[common])" : "ends after \(common) events"
    }
    return
      (["The traces differ from event \(common) on:"] + before
      + ["  this  \(lines[0])", "  other \(lines[1])"]).joined(separator: "\n")
  }
}

/// The trace of a deterministic central, while somebody wants one.
final class TraceLog: Sendable {
  private struct State {
    /// Nil unless it is wanted.
    var entries: [EventTrace.Entry]?
    var names: [UInt: String] = [:]
  }
  private let state = Guarded(State())

  func begin() {
    let isFree = state.withLock { state in
      defer { state.entries = [] }
      return state.entries == nil
    }
    require(
      isFree,
      """
      A central has one trace at a time, and EventCentral.trace(_:) was called inside the closure of another \
      one: join the two.
      """)
  }

  func end() -> EventTrace {
    EventTrace(
      entries: state.withLock { state in
        defer { state.entries = nil }
        return state.entries ?? []
      })
  }

  fileprivate func append(_ key: UInt, _ lane: UInt8, _ time: UInt64, _ receiver: String) {
    state.withLock { state in
      guard let sequence = state.entries?.count else { return }
      let type = state.names[key] ?? eventTypeName(key)
      state.names[key] = type
      let lane = Lane(index: lane)
      state.entries?.append(
        EventTrace.Entry(
          sequence: sequence, time: DispatchTime(uptimeNanoseconds: time), type: type, receiver: receiver,
          method: lane.method, priority: lane.priority))
    }
  }
}

/// A consumer's name in a trace.
final class TraceName: Sendable {
  /// Nil for one that is in no trace.
  private let log: TraceLog?
  private let name: String

  init(_ log: TraceLog?, _ name: String) {
    self.log = log
    self.name = name
  }

  /// Notes an event that the consumer has taken.
  func note(_ key: UInt, _ envelope: UnsafeRawPointer, at time: UInt64) {
    guard let log else { return }
    let lane = envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self)
    log.append(key, lane, time, name)
  }
}
