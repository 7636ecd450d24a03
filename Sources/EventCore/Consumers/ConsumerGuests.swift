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
    var hasLost = false
  }
  // Within this mutex no consumer is retained, whose release would run code of the user's.
  private let state = Guarded(State())

  // MARK: Any thread

  /// False if the host has ended its guests.
  fileprivate func add(_ guest: Consumer, _ driver: ObjectIdentifier) -> Bool {
    state.withLock { state in
      guard !state.hasEnded else { return false }
      let new = Guest(driver: driver, consumer: guest)
      // Another driver may have been at this address.
      if let index = state.guests.firstIndex(where: { $0.driver == driver }) {
        state.guests[index] = new
      } else {
        state.guests.append(new)
      }
      return true
    }
  }

  /// Whether the host has ended its guests, so that those that come later end at once.
  var hasEnded: Bool { state.withLock { $0.hasEnded } }
  /// Whether events of guests were freed, since the host was cancelled while it was to handle what waits for them.
  var hasLost: Bool { state.withLock { $0.hasLost } }

  /// A guest has ended. `isHostOpen`: by itself.
  func didEnd(_ driver: ObjectIdentifier, isHostOpen: Bool) {
    guard let guest = remove(driver), !isHostOpen else { return }
    if guest.lostCount > 0 { state.withLock { $0.hasLost = true } }
  }

  @discardableResult
  fileprivate func remove(_ driver: ObjectIdentifier) -> Consumer? {
    let removed = state.withLock { state in
      state.guests.firstIndex { $0.driver == driver }.map { state.guests.remove(at: $0) }
    }
    return removed?.consumer
  }

  /// Closes the mailboxes of all guests, as the host's is closed. It runs no code of the user's.
  func closeMailboxes(whenEmpty: Bool) {
    for guest in state.withLock({ $0.guests }) { guest.consumer?.closeMailbox(whenEmpty: whenEmpty) }
  }

  // MARK: The host's thread

  /// Has the guests handle what waits for them, as long as a condition holds, and ends them. Their mailboxes are
  /// closed, as the host is.
  fileprivate func end(while goesOn: () -> Bool) {
    var round = 0
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
      if guest.pump?.perform() != true { yieldThread(round: &round) }
    }
    let left = state.withLock { state in
      state.hasEnded = true
      return state.guests
    }
    for guest in left.compactMap(\.consumer) {
      guest.close(whenEmpty: false)
      // The thread that frees a handler of it ends it, too.
      if !guest.ended.isOpen, guest.mailbox.depths().contains(where: { $0 > 0 }) {
        state.withLock { $0.hasLost = true }
      }
    }
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

  /// Whether this consumer waits for the calling thread before it ends: its own, or one that frees a guest's handler.
  var waitsForCaller: Bool {
    isCurrent || delivers && Self.current.value?.pump?.driver.host === self
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
    // It may be open still if it is a worker whose shared mailbox has ended. A cancelled one stays so.
    registry.close(whenEmpty: true)
    // Made also if there are none, for those that come later.
    let guests = guests.value(or: ConsumerGuests.init)
    guests.closeMailboxes(whenEmpty: registry.delivers)
    guests.end {
      // Answers those who wait for a handler of this consumer's.
      control()
      return registry.delivers
    }
  }
}
