// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The receivers of one key at one moment. Immutable.
final class LockingSnapshot: Sendable {
  struct Entry: Sendable {
    let subscription: LockingSubscription
    let sink: any LockingSink
    var generation: UInt32
    var timed: Bool
    /// Of a thread of a pool; nil in a router.
    var load: EventLoad?
  }

  let entries: [Entry]
  let isTimed: Bool

  init(_ entries: [Entry]) {
    self.entries = entries
    isTimed = entries.contains { $0.timed }
  }

  /// Where the loads of the entries lie: the first one's address, and how far apart they are.
  func withLoads<Result>(_ body: (_ first: UnsafeRawPointer, _ stride: Int) -> Result) -> Result {
    entries.withUnsafeBytes { bytes in
      // An optional pointer has the layout of a pointer, and a stored property an offset.
      body(
        bytes.baseAddress.unsafelyUnwrapped
          + MemoryLayout<Entry>.offset(of: \.load).unsafelyUnwrapped,
        MemoryLayout<Entry>.stride)
    }
  }
}

/// The router in pure Swift: a dictionary of immutable snapshots under one mutex, held for a
/// look-up.
final class LockingRouter: RouterCore {
  private let snapshots = Guarded<[UInt: LockingSnapshot]>([:])

  func begin(
    key: UInt, lane: UInt8, size: Int, alignment: Int, events: Int, _ state: inout DispatchState
  ) {
    guard let snapshot = snapshots.withLock({ $0[key] }) else { return }
    let isBoxed = size > EnvelopeLayout.inlineSize || alignment > EnvelopeLayout.inlineSize
    let time = snapshot.isTimed ? monotonicNanoseconds() : 0
    let receivers = snapshot.entries.count
    var boxes: [UnsafeMutableRawPointer] = []
    if isBoxed {
      boxes = (0..<events).map { _ in
        LockingEnvelope.makeBox(size: size, alignment: alignment, references: UInt32(receivers))
      }
    }
    var last: UnsafeMutableRawPointer?
    for entry in snapshot.entries {
      for event in 0..<events {
        let envelope = LockingEnvelope.make(
          entry, lane: lane, time: time, box: isBoxed ? boxes[event] : nil)
        if let last {
          setEnvelopeNext(last, envelope)
        } else {
          state.first = envelope
        }
        last = envelope
      }
    }
    state.receivers = UInt32(receivers)
    state.payloads = UInt32(isBoxed ? events : events * receivers)
    state.shared = isBoxed
    state.lane = lane
    state.events = UInt16(events)
    // Keeps subscriptions and sinks alive until the commit.
    state.snapshot = Unmanaged.passRetained(snapshot).toOpaque()
  }

  func commit(_ state: inout DispatchState) -> Int {
    guard let opaque = state.snapshot, var envelope = state.first else { return 0 }
    let snapshot = Unmanaged<LockingSnapshot>.fromOpaque(opaque).takeRetainedValue()
    state.snapshot = nil
    state.first = nil
    var accepted = 0
    for (index, entry) in snapshot.entries.enumerated() {
      let first = envelope
      var last = first
      for _ in 1..<max(1, Int(state.events)) {
        last = envelopeNext(last)!
      }
      if index + 1 < snapshot.entries.count {
        envelope = envelopeNext(last)!
      }
      setEnvelopeNext(last, nil)
      if entry.sink.post(first, last, count: Int(state.events)) {
        accepted += 1
      } else {
        refuse(first)
      }
    }
    return accepted
  }

  private func refuse(_ first: UnsafeMutableRawPointer) {
    var returns = LockingReturns()
    var next: UnsafeMutableRawPointer? = first
    while let envelope = next {
      next = envelopeNext(envelope)
      LockingEnvelope.end(envelope, payloadMoved: false, &returns)
    }
  }

  func subscribe(_ key: UInt, _ subscription: Subscription, generation: UInt32, timed: Bool) {
    let subscription = Unmanaged<LockingSubscription>.fromOpaque(subscription.pointer)
      .takeUnretainedValue()
    let entry = LockingSnapshot.Entry(
      subscription: subscription, sink: subscription.sink, generation: generation, timed: timed)
    replace(key) { entries in
      if let index = entries.firstIndex(where: { $0.subscription === subscription }) {
        entries[index] = entry
      } else {
        entries.append(entry)
      }
    }
  }

  func unsubscribe(_ key: UInt, _ subscription: Subscription) {
    let subscription = Unmanaged<LockingSubscription>.fromOpaque(subscription.pointer)
      .takeUnretainedValue()
    replace(key) { entries in
      entries.removeAll { $0.subscription === subscription }
    }
  }

  private func replace(_ key: UInt, _ change: (inout [LockingSnapshot.Entry]) -> Void) {
    // What the old snapshot held may end with it: outside the mutex.
    let old = snapshots.withLock { snapshots in
      let old = snapshots[key]
      var entries = old?.entries ?? []
      change(&entries)
      snapshots[key] = entries.isEmpty ? nil : LockingSnapshot(entries)
      return old
    }
    withExtendedLifetime(old) {}
  }
}
