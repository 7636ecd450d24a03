// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Latest-only subscriptions of a shared mailbox and of its workers' own, as LockingLatest.swift.
// One mutex guards the slots of all: whoever takes a token out of the lanes looks into its slot in
// the same step, so that a token that waits, or an empty slot, is all that anybody sees.

extension LockingSharedMailbox: LockingLatestMailbox {
  func replace(
    in slot: LockingLatestSlot, by newest: UnsafeMutableRawPointer, count: Int,
    _ old: inout UnsafeMutableRawPointer?
  ) -> Bool {
    var isAccepted = false
    withLock { (state: inout State) -> LockingWorker? in
      guard !state.refuses else { return nil }
      isAccepted = true
      let token: UnsafeMutableRawPointer?
      (old, token) = slot.replace(newest, count: count, &state.superseded)
      guard let token else { return nil }
      state.depths[LockingEnvelope.lane(token)] += 1
      state.lanes.put(token)
      return state.asleep.popLast()
    }
    return isAccepted
  }

  func addLatestSubscription(_ entry: SharedMailbox.Entry) -> Subscription {
    let latest = LockingLatest(LockingSubscription(entry), self)
    let pointer = Unmanaged.passUnretained(latest.subscription).toOpaque()
    withLock { (state: inout State) in state.latests[pointer] = latest }
    return Subscription(pointer: pointer)
  }

  func removeLatestSubscription(_ subscription: Subscription) {
    // Ends outside the lock.
    let latest = withLock { (state: inout State) in
      state.latests.removeValue(forKey: subscription.pointer)
    }
    withExtendedLifetime(latest) {}
  }

  var supersededCount: UInt64 { withLock { (state: inout State) in state.superseded } }
}

extension LockingWorker: LockingLatestMailbox {
  func replace(
    in slot: LockingLatestSlot, by newest: UnsafeMutableRawPointer, count: Int,
    _ old: inout UnsafeMutableRawPointer?
  ) -> Bool {
    var isAccepted = false
    tell { own in
      guard !own.refuses else { return }
      isAccepted = true
      let token: UnsafeMutableRawPointer?
      (old, token) = slot.replace(newest, count: count, &own.superseded)
      guard let token else { return }
      own.depths[LockingEnvelope.lane(token)] += 1
      own.lanes.put(token)
    }
    return isAccepted
  }

  func addLatestSubscription(_ receiver: Receiver) -> Subscription {
    let latest = LockingLatest(LockingSubscription(receiver), self)
    let pointer = Unmanaged.passUnretained(latest.subscription).toOpaque()
    mailbox.withLock { _ in own.pointee.latests[pointer] = latest }
    return Subscription(pointer: pointer)
  }

  func removeLatestSubscription(_ subscription: Subscription) {
    // Ends outside the lock.
    let latest = mailbox.withLock { _ in
      own.pointee.latests.removeValue(forKey: subscription.pointer)
    }
    withExtendedLifetime(latest) {}
  }

  func supersededCount(of subscription: Subscription) -> UInt64 {
    mailbox.withLock { _ in own.pointee.latests[subscription.pointer]?.slot.superseded ?? 0 }
  }

  var supersededCount: UInt64 { mailbox.withLock { _ in own.pointee.superseded } }
}

/// What a closed mailbox took out of its lanes, to be ended with its mutex open.
struct LockingDropped {
  /// Nil for a token that stood for nothing.
  let event: UnsafeMutableRawPointer?
  private let slot: Unmanaged<LockingLatestSlot>?

  /// The mutex is held.
  init(_ envelope: UnsafeMutableRawPointer, _ lane: Int) {
    slot = LockingLatestSlot.of(envelope)
    event = slot.map { $0._withUnsafeGuaranteedRef { $0.take(lane, anyLane: true) } } ?? envelope
  }

  func end(_ returns: inout LockingReturns) {
    if let event {
      LockingEnvelope.end(event, payloadMoved: false, &returns)
    }
    slot?.release()
  }
}
