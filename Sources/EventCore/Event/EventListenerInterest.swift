// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Which events of its type a handler wants to be called for: one condition, or several that an
/// event has to meet together.
///
/// What an interest turns away is skipped: the handler is not called, the event counts as skipped
/// for this handler, and every other handler gets it as usual (D4).
///
/// ```swift
/// thread.addEventCallback(
///   { (event: TemperatureEvent) in print(event.temperatureInCelsius) },
///   interestedIn: [.latestOnly, .youngerThan(.milliseconds(16))])
/// ```
///
/// With ``latestOnly`` the newest of the waiting events is found first, and the other conditions
/// judge that one: if it is turned away, none of the older ones comes in its place.
///
/// An interest without any condition (`[]`) would match nothing and is refused where it is used.
public struct EventListenerInterest: OptionSet, Sendable {
  /// The conditions, without the age of ``youngerThan(_:)``.
  public let rawValue: UInt8
  /// Nanoseconds; 0 if it comes as `maximumAge`, or is not asked for.
  @usableFromInline let age: UInt64

  /// An interest by its bits. Prefer the named ones.
  public init(rawValue: UInt8) {
    self.init(rawValue, age: 0)
  }

  private init(_ rawValue: UInt8, age: UInt64) {
    self.rawValue = rawValue
    self.age = age
  }

  /// Every event.
  public static let all = EventListenerInterest(rawValue: 1 << 0)
  /// Of the events that wait for the handler only the one that was dispatched last, on whatever
  /// lane. The others are never stored: however many come, one waits. What "waits for the handler"
  /// means in a pool, <doc:ThreadsAndPools> tells.
  public static let latestOnly = EventListenerInterest(rawValue: 1 << 1)
  /// Events that are younger than `maximumAge` when the handler would run.
  public static let youngerThan = EventListenerInterest(rawValue: 1 << 2)
  /// Events that pass `customFilter`, which is asked when the handler would run.
  public static let custom = EventListenerInterest(rawValue: 1 << 3)

  /// Events that are younger than an age when the handler would run.
  ///
  /// - Parameter age: More than zero, or it traps. With it `maximumAge` is left out.
  public static func youngerThan(_ age: Duration) -> EventListenerInterest {
    require(
      age > .zero,
      """
      The interest .youngerThan needs an age above zero, and was given \(age), than which nothing is \
      younger: pass a longer one.
      """)
    return EventListenerInterest(youngerThan.rawValue, age: age.wholeNanoseconds)
  }

  // `OptionSet` would do with the bits alone. Of two ages the lower one holds: an event has to be
  // younger than both; and an age is kept as long as `youngerThan` is.

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

  /// The conditions of both.
  ///
  /// - Parameter other: What to add. Of two ages the lower one holds.
  /// - Returns: An interest that asks for everything that either asks for.
  public func union(_ other: EventListenerInterest) -> EventListenerInterest {
    with(rawValue | other.rawValue, other)
  }

  public func intersection(_ other: EventListenerInterest) -> EventListenerInterest {
    with(rawValue & other.rawValue, other)
  }

  public func symmetricDifference(_ other: EventListenerInterest) -> EventListenerInterest {
    with(rawValue ^ other.rawValue, other)
  }

  /// Adds conditions, unless they are there already.
  ///
  /// - Parameter newMember: What to add.
  /// - Returns: Whether any was new, and what was given.
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
