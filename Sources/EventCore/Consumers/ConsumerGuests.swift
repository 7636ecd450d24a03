// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The consumers whose jobs another one, their host, runs as its own events: listeners of another central, or of
/// another event thread, that are called on the host's thread.
///
/// They end with their host. If it is cancelled, a batch of theirs that is running ends after the present handler. If
/// it is drained, they take nothing more either, and the host handles what waits for them before it ends, whether it
/// has a job for that or not: who has filled a mailbox may be taken away before it makes the job, which the host then
/// refuses (D10).
final class ConsumerGuests: Sendable {
  private struct Guest: Sendable {
    let driver: ObjectIdentifier
    weak let consumer: Consumer?
  }
  private struct State {
    /// By age, so that a deterministic central ends them in one order.
    var guests: [Guest] = []
    var hasEnded = false
    var dropped: UInt64 = 0
  }
  // Within this mutex no consumer is retained, whose release would run code of the user's.
  private let state = Guarded(State())

  // MARK: Any thread

  /// False if the host has ended its guests.
  fileprivate func add(_ guest: Consumer, _ driver: ObjectIdentifier) -> Bool {
    state.withLock { state in
      guard !state.hasEnded else { return false }
      // Another driver may have been at this address.
      state.guests.removeAll { $0.driver == driver }
      state.guests.append(Guest(driver: driver, consumer: guest))
      return true
    }
  }

  /// Whether the host has ended its guests, so that those that come later end at once.
  var hasEnded: Bool { state.withLock { $0.hasEnded } }
  /// How many events of guests were freed, since the host was cancelled while it handled what waits for them.
  var dropped: UInt64 { state.withLock { $0.dropped } }

  func remove(_ driver: ObjectIdentifier) {
    state.withLock { $0.guests.removeAll { $0.driver == driver } }
  }

  /// Closes the mailboxes of all guests, as the host's is closed. It runs no code of the user's.
  func closeMailboxes(whenEmpty: Bool) {
    for guest in state.withLock({ $0.guests }) { guest.consumer?.closeMailbox(whenEmpty: whenEmpty) }
  }

  // MARK: The host's thread

  /// Has the guests handle what waits for them, as long as a condition holds, and ends them. Their mailboxes are
  /// closed, as the host is.
  fileprivate func end(while goesOn: () -> Bool) {
    while goesOn() {
      let next = state.withLock { state in
        state.hasEnded = state.guests.isEmpty
        return state.guests.first
      }
      guard let next else { return }
      guard let guest = next.consumer, !guest.ended.isOpen else {
        remove(next.driver)
        continue
      }
      // Another thread may be freeing a handler of the guest's.
      if guest.pump?.perform() != true { yieldThread() }
      if guest.ended.isOpen { count(guest) }
    }
    let left = state.withLock { state in
      state.hasEnded = true
      return state.guests
    }
    for guest in left.compactMap(\.consumer) {
      guest.close(whenEmpty: false)
      count(guest)
    }
  }

  private func count(_ guest: Consumer) {
    let dropped = guest.mailbox.counts().dropped
    state.withLock { $0.dropped += dropped }
  }
}

extension Consumer {
  /// Has a consumer end with this one, whose jobs the driver of its pump makes events of this one. Any thread.
  func add(guest: Consumer) {
    guard let driver = guest.pump?.driver else { return }
    guard guests.value(or: ConsumerGuests.init).add(guest, ObjectIdentifier(driver)) else {
      return guest.close(whenEmpty: false)
    }
    // The mutex of the registry orders the two: who closes this consumer finds the guest, or this sees it closed.
    let (isOpen, isDraining) = registry.phase
    if !isOpen { guest.closeMailbox(whenEmpty: isDraining) }
    // It may have ended before it was added.
    if guest.ended.isOpen { guests.value?.remove(ObjectIdentifier(driver)) }
  }

  /// Whether the calling thread runs a guest of this consumer, be it to free a handler alone.
  var isHostOfCurrent: Bool {
    (Self.current.value?.pump?.driver as? ThreadDriver).map { $0.isHosted(by: self) } ?? false
  }

  fileprivate func closeMailbox(whenEmpty: Bool) {
    registry.close(whenEmpty: whenEmpty)
    if whenEmpty {
      mailbox.closeWhenEmpty()
      // So that a job is due even if who has filled the mailbox has not yet woken it.
      pump?.wake()
    } else {
      mailbox.close()
    }
  }

  /// Ends the guests: after what waits for them, unless this consumer was cancelled. This consumer's thread, which
  /// takes no more.
  func endGuests() {
    // Open still if it is a worker whose shared mailbox has ended. A cancelled one stays so.
    registry.close(whenEmpty: true)
    // Made also if there are none, for those that come later.
    let guests = guests.value(or: ConsumerGuests.init)
    guests.closeMailboxes(whenEmpty: registry.delivers)
    guests.end { registry.delivers }
  }
}
