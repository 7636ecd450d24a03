// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventCentral {
  /// Makes memory ahead for events that the calling thread will dispatch, so that its first ones allocate nothing
  /// either.
  ///
  /// - Parameter events: How many may be under way at one time, counted once for each receiver; 64 bytes each. What a
  ///   receiver has handled comes back in groups, so add some 1,000 for each receiver. The memory is written before this returns: ask for no more than
  ///   the machine has.
  ///
  /// It lasts as long as the thread. An event of more than 32 bytes lies in a box, which the thread allocates at first.
  /// On the locking core it does nothing: there events lie in the receiver's lanes, which grow with the first backlog.
  /// What a lane has above 32 KiB it keeps for a second after the last backlog that needed it, and a listener's on a
  /// queue or an actor until it runs dry.
  ///
  /// **Threads**: each that dispatches, before it must not wait. **Complexity**: O(events), as the allocator.
  public func reserve(_ events: Int) {
    require(
      events >= 0,
      """
      EventCentral.reserve(_:) takes the number of events that may be under way at one time, and this one is \
      \(events): pass 0 or more.
      """)
    core.parts.reserve(events)
  }
}
