// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Eventable {
  /// Has a central keep the newest event of this type, for those who come later: whoever registers from now on, as a
  /// callback, a listener, a sequence or by ``next(on:where:within:isolation:)``, is called for it first. Such events are
  /// known as sticky.
  ///
  /// ```swift
  /// ConnectionState.keepNewest(on: world, maximumAge: .seconds(60))
  /// ```
  ///
  /// The kept event comes after what waits in the same place, and not at all if an event of its type is among that,
  /// which is newer. It finds a place in a full mailbox, and has its priority and the time of its dispatch, by which
  /// interests judge it. What is dispatched after the registration comes as always (D4). The threads of a pool, which share
  /// their work, get no kept events. Until its turn comes, a kept event counts as one that waits, even if a newer one
  /// has made it superfluous; then it counts as delivered, whether it has called the handler or not.
  ///
  /// The newest event alone is kept. So who registers is called for none if a newer one is dispatched before the kept
  /// one's turn, and is refused or dropped by the bound of the mailbox, or skipped by the interest. A mailbox without a
  /// bound loses none.
  ///
  /// - Parameters:
  ///   - central: Which one; until its end.
  ///   - maximumAge: The age on the central's clock from which on the event is kept for nobody; nil for none. A later
  ///     call replaces it.
  ///
  /// **Threads**: any.
  ///
  /// **Complexity**: a dispatch of the type has a receiver more, with `.latestOnly`, which counts in what it returns, and
  /// reads the clock. The receiver's name is `newest`, in ``EventCentral/statistics``, ``EventCentral/flowGraph`` and
  /// what ``queueToEach(priority:on:)`` returns. It takes an event when somebody reads: the last one waits there.
  /// If somebody has read the event since the last dispatch, it also takes a mutex for a moment, and posts to those who
  /// have registered since and had no event.
  public static func keepNewest(on central: EventCentral = .shared, maximumAge: Duration? = nil) {
    require(
      maximumAge.map { $0 > .zero } ?? true,
      """
      An event that is kept is younger than its maximum age, and \(maximumAge ?? .zero) leaves none: pass more, or nil \
      for any age.
      """)
    sticky(on: central, orMake: true)?.setMaximumAge(maximumAge.map(\.wholeNanoseconds))
  }

  /// The newest event of this type, if the central keeps it and it is not too old.
  ///
  /// - Parameter central: Which one.
  /// - Returns: The event that was dispatched last; nil if none was since ``keepNewest(on:maximumAge:)``, or since it was
  ///   cleared.
  ///
  /// **Threads**: any. A thread sees what it has dispatched itself.
  ///
  /// **Complexity**: O(1); takes a mutex.
  public static func newest(on central: EventCentral = .shared) -> Self? {
    sticky(on: central, orMake: false)?.newest()?.event
  }

  /// Forgets the event that is kept: nobody is called for it any more. That is who comes later, until the next one is
  /// dispatched, and also who has registered before and was not called for it yet. What was dispatched after a
  /// registration comes all the same.
  ///
  /// - Parameter central: Which one.
  ///
  /// **Threads**: any.
  public static func clearNewest(on central: EventCentral = .shared) {
    sticky(on: central, orMake: false)?.clear()
  }

  private static func sticky(on central: EventCentral, orMake: Bool) -> TypedStickyEvent<Self>? {
    let (sticky, key) = (central.basis.sticky, eventKey(Self.self))
    let event =
      orMake
      ? sticky.event(key) { TypedStickyEvent<Self>(central.basis, central.router) } : sticky.event(key)
    // By its key the type is this one.
    return event.map { unsafeDowncast($0, to: TypedStickyEvent<Self>.self) }
  }
}
