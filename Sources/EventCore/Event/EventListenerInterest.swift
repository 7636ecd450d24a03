// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// For which events of its type a handler is called: a set of conditions that an event has to meet.
///
/// An event that does not meet them is skipped: it is counted for this handler, and other handlers get it
/// as usual (D4).
///
/// ```swift
/// thread.addEventCallback(
///   { (event: TemperatureEvent) in print(event.temperatureInCelsius) },
///   interestedIn: [.latestOnly, .youngerThan(.milliseconds(16))])
/// ```
///
/// With ``latestOnly`` and ``latestPerKey``, the other conditions apply to the newest of the waiting events: if they
/// skip it, no older event takes its place.
///
/// Registering a handler with an empty interest (`[]`) traps.
public struct EventListenerInterest: OptionSet, Sendable {
  /// The conditions, without the age of ``youngerThan(_:)``.
  public let rawValue: UInt8
  /// In nanoseconds; 0 if there is none, or it is passed as `maximumAge`.
  @usableFromInline let age: UInt64

  /// Makes an interest from its bits. Prefer the named ones.
  public init(rawValue: UInt8) {
    self.init(rawValue, age: 0)
  }

  private init(_ rawValue: UInt8, age: UInt64) {
    self.rawValue = rawValue
    self.age = age
  }

  /// Every event.
  public static let all = EventListenerInterest(rawValue: 1 << 0)
  /// Of the events that wait for the handler only the one that was dispatched last, on any lane. The others
  /// are not stored. <doc:ThreadsAndPools> says what this means in a pool.
  public static let latestOnly = EventListenerInterest(rawValue: 1 << 1)
  /// Of the events that wait for the handler only the newest of each ``Conflatable/conflationKey``, in the place of
  /// the first of its lane: a newer event takes the place of one with the same key, which is not stored any longer.
  /// Registering a handler for events that are not ``Conflatable`` with it traps, and so does `.latestOnly` beside it.
  public static let latestPerKey = EventListenerInterest(rawValue: 1 << 4)
  /// Events that are younger than the argument `maximumAge` when the handler would run.
  public static let youngerThan = EventListenerInterest(rawValue: 1 << 2)
  /// Events for which the argument `customFilter` returns true when the handler would run.
  public static let custom = EventListenerInterest(rawValue: 1 << 3)

  /// Events that are younger than an age when the handler would run.
  ///
  /// - Parameter age: More than zero, or it traps. Leave `maximumAge` out.
  public static func youngerThan(_ age: Duration) -> EventListenerInterest {
    require(
      age > .zero,
      """
      The interest .youngerThan needs an age above zero, and was given \(age), than which nothing is \
      younger: pass a longer one.
      """)
    return EventListenerInterest(youngerThan.rawValue, age: age.wholeNanoseconds)
  }

  // The default members of `OptionSet` know only the bits. These keep an age as long as `youngerThan` is
  // set, and the lower of two ages, since an event has to be younger than both.

  private func with(_ rawValue: UInt8, _ other: EventListenerInterest) -> EventListenerInterest {
    guard rawValue & Self.youngerThan.rawValue != 0 else {
      return EventListenerInterest(rawValue: rawValue)
    }
    return EventListenerInterest(rawValue, age: [age, other.age].filter { $0 != 0 }.min() ?? 0)
  }

  public mutating func formUnion(_ other: EventListenerInterest) {
    self = with(rawValue | other.rawValue, other)
  }

  public mutating func formIntersection(_ other: EventListenerInterest) {
    self = with(rawValue & other.rawValue, other)
  }

  public mutating func formSymmetricDifference(_ other: EventListenerInterest) {
    self = with(rawValue ^ other.rawValue, other)
  }

  /// Returns the conditions of both; of two ages the lower one.
  public func union(_ other: EventListenerInterest) -> EventListenerInterest {
    with(rawValue | other.rawValue, other)
  }

  public func intersection(_ other: EventListenerInterest) -> EventListenerInterest {
    with(rawValue & other.rawValue, other)
  }

  public func symmetricDifference(_ other: EventListenerInterest) -> EventListenerInterest {
    with(rawValue ^ other.rawValue, other)
  }

  /// Adds conditions. Returns whether any was new, and what was added.
  @discardableResult
  public mutating func insert(
    _ newMember: EventListenerInterest
  ) -> (inserted: Bool, memberAfterInsert: EventListenerInterest) {
    let isNew = !contains(newMember)
    formUnion(newMember)
    return (isNew, newMember)
  }

  @discardableResult
  public mutating func remove(_ member: EventListenerInterest) -> EventListenerInterest? {
    let removed = with(rawValue & member.rawValue, member)
    self = with(rawValue & ~member.rawValue, EventListenerInterest(rawValue: 0))
    return removed.isEmpty ? nil : removed
  }
}
