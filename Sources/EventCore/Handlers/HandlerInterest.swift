// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// A handler's interest, made and checked from the public parameters.
@usableFromInline
struct HandlerInterest<E: Eventable> {
  @usableFromInline
  typealias Filter =
    (_ event: E, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool

  /// Which of the waiting events, which the mailbox finds.
  @usableFromInline let conflation: Conflation
  /// In nanoseconds; 0 for any age.
  @usableFromInline let maximumAge: UInt64
  @usableFromInline let filter: Filter?

  /// Traps if the parameters contradict each other.
  @inlinable
  init(_ interest: EventListenerInterest, maximumAge: UInt64, customFilter: Filter?) {
    requireInterest(interest, maximumAge: maximumAge, hasFilter: customFilter != nil)
    conflation = conflationAsked(by: interest, E.self)
    self.maximumAge = max(maximumAge, interest.age)
    filter = customFilter
  }

  /// The same with a filter of the MainActor, which is called on the main queue.
  @inlinable
  init(
    _ interest: EventListenerInterest, maximumAge: UInt64,
    onMain filter: (@MainActor @Sendable (E, EventPriority, DispatchTime) -> Bool)?
  ) {
    self.init(
      interest, maximumAge: maximumAge,
      customFilter: filter.map { filter in
        { event, priority, time in MainActor.assumeIsolated { filter(event, priority, time) } }
      })
  }

  /// The same for a callback that has the filter itself (`HandlerCallback.judge`).
  @inlinable
  init(_ interest: EventListenerInterest, maximumAge: UInt64, isJudged: Bool) {
    self.init(
      interest, maximumAge: maximumAge, customFilter: isJudged ? { _, _, _ in true } : nil)
  }

  /// Whether no event has to be judged when the handler would run, which needs the time of dispatch.
  @inlinable
  var takesAny: Bool { maximumAge == 0 && filter == nil }

  /// Judges an event for its handler, right before that would run. The age comes first, since it costs less.
  @inlinable
  func admits(_ event: E, _ lane: UInt8, _ time: UInt64, for handler: HandlerState) -> Bool {
    if maximumAge != 0, !isYounger(than: maximumAge, dispatched: time, now: handler.now) {
      return false
    }
    guard let filter else { return true }
    return filter(event, Lane(index: lane).priority, DispatchTime(uptimeNanoseconds: time))
  }

  /// Whether the filter, which is user code, has ended its own handler, which must not be called then (D6).
  @inlinable
  func hasEnded(_ handler: HandlerState) -> Bool { filter != nil && handler.isEnded }
}

/// Whether an event's age, in nanoseconds, is below a limit.
@usableFromInline
func isYounger(than maximumAge: UInt64, dispatched: UInt64, now: UInt64) -> Bool {
  // An event that was dispatched after the clock was read has no age.
  now < dispatched || now - dispatched < maximumAge
}

/// Traps if the interest asks for keys that events of this type do not have.
@usableFromInline
func conflationAsked(by interest: EventListenerInterest, _ type: any Eventable.Type) -> Conflation {
  guard interest.contains(.latestPerKey) else {
    return interest.contains(.latestOnly) ? .latestOnly : .none
  }
  guard let conflatable = type as? any Conflatable.Type else {
    require(
      false,
      """
      The interest .latestPerKey needs events with a key, and \(type) has none: make it Conflatable, or pass \
      .latestOnly for the newest of all events.
      """)
    return .none
  }
  return .perKey(conflatable.conflation.keys)
}

@usableFromInline
func requireInterest(_ interest: EventListenerInterest, maximumAge: UInt64, hasFilter: Bool) {
  let all: EventListenerInterest = [.all, .latestOnly, .latestPerKey, .youngerThan, .custom]
  require(
    !interest.isEmpty && all.isSuperset(of: interest),
    """
    An interest is one or more of .all, .latestOnly, .latestPerKey, .youngerThan and .custom, and this one has the bits \
    \(interest.rawValue): with none of them the handler would never be called. Pass .all for every event.
    """)
  require(
    !interest.isSuperset(of: [.latestOnly, .latestPerKey]),
    """
    A handler gets the newest of all waiting events or the newest of each key, and this interest has both \
    .latestOnly, for which the buffering .latest of a sequence stands as well, and .latestPerKey: leave one of them out.
    """)
  require(
    maximumAge == 0 || interest.age == 0,
    """
    An age is said once, and this one twice: maximumAge is \(maximumAge), and .youngerThan has an age \
    of \(interest.age) ns. Leave one of them out.
    """)
  let isAgeAsked = interest.contains(.youngerThan)
  require(
    isAgeAsked == (maximumAge != 0 || interest.age != 0),
    isAgeAsked
      ? """
      The interest .youngerThan needs a maximum age, and maximumAge is 0, than which nothing is \
      younger: pass maximumAge, in nanoseconds, or say .youngerThan(.seconds(1)).
      """
      : """
      A maximum age belongs to the interest .youngerThan, and maximumAge is \(maximumAge) for an \
      interest that asks for no age: add .youngerThan to interestedIn, or leave maximumAge out.
      """)
  let isFilterAsked = interest.contains(.custom)
  require(
    isFilterAsked == hasFilter,
    isFilterAsked
      ? """
      The interest .custom needs a filter, and customFilter is nil: pass customFilter, which returns \
      true for the events that the handler wants. Where there is no such parameter, leave .custom out, and \
      return from the handler for the others.
      """
      : """
      A filter belongs to the interest .custom, and customFilter was passed for an interest that asks \
      for none: add .custom to interestedIn, or leave customFilter out.
      """)
}
