// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The consumers whose jobs another one, their host, runs as its own events: listeners of another central, or of another
/// event thread, that are called on the host's thread.
///
/// They end with their host. If it is cancelled, a batch of theirs that is running ends after the present handler. If it
/// is drained, they take nothing more either, and the host handles what waits for them before it ends, whether a job for
/// that has come or not: a post may have been taken away before it made one, and comes too late (D10).
final class ConsumerGuests: Sendable {
  private struct Guest: Sendable {
    let driver: ObjectIdentifier
    weak let consumer: Consumer?
  }
  private struct State {
    /// By age, so that a deterministic central ends them in one order.
    var guests: [Guest] = []
    var hasEnded = false
  }
  // Within this mutex no consumer is retained, whose release would run code of the user's.
  private let state = Guarded(State())

  // MARK: Any thread

  /// False if the host has ended.
  fileprivate func add(_ guest: Consumer, _ driver: ObjectIdentifier) -> Bool {
    state.withLock { state in
      if !state.hasEnded, !state.guests.contains(where: { $0.driver == driver }) {
        state.guests.append(Guest(driver: driver, consumer: guest))
      }
      return !state.hasEnded
    }
  }

  func remove(_ driver: ObjectIdentifier) {
    state.withLock { $0.guests.removeAll { $0.driver == driver } }
  }

  /// Closes the mailboxes of all guests, as the host's is closed. It runs no code of the user's.
  func closeMailboxes(whenEmpty: Bool) {
    for guest in state.withLock({ $0.guests }) { guest.consumer?.closeMailbox(whenEmpty: whenEmpty) }
  }

  // MARK: The host's thread

  /// Has the guests, whose mailboxes are closed, handle what waits for them, as long as a condition holds, and ends them.
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
      // Another thread may be about to have freed a handler of the guest's.
      if guest.pump?.perform() != true { yieldThread() }
    }
    let left = state.withLock { state in
      state.hasEnded = true
      return state.guests
    }
    for guest in left { guest.consumer?.close(whenEmpty: false) }
  }
}

extension Consumer {
  /// Has a consumer end with this one, whose jobs the driver of its pump makes events of this one. Any thread.
  func add(guest: Consumer) {
    guard let driver = guest.pump?.driver else { return }
    guard guests.value(or: ConsumerGuests.init).add(guest, ObjectIdentifier(driver)) else {
      return guest.close(whenEmpty: false)
    }
    // The mutex of the registry orders the two: either who closes this consumer finds the guest, or this sees it closed.
    let (isOpen, isDraining) = registry.phase
    if !isOpen { guest.closeMailbox(whenEmpty: isDraining) }
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

  /// Ends the guests: after what waits for them, unless this consumer was cancelled. This consumer's thread, which takes
  /// no more.
  func endGuests() {
    guard let guests = guests.value else { return }
    guests.closeMailboxes(whenEmpty: registry.delivers)
    guests.end { registry.delivers }
  }
}
