// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Ten lists of envelopes. No lock of its own.
struct LockingLanes: ~Copyable {
  private let lists:
    UnsafeMutablePointer<(head: UnsafeMutableRawPointer?, tail: UnsafeMutableRawPointer?)>
  /// One bit for each lane that holds something.
  private(set) var occupied: UInt32 = 0

  init() {
    lists = .allocate(capacity: Lane.count)
    lists.initialize(repeating: (nil, nil), count: Lane.count)
  }

  deinit {
    lists.deallocate()
  }

  /// Puts an envelope behind (queue) or before (stack) the others of its lane.
  mutating func put(_ envelope: UnsafeMutableRawPointer) {
    let lane = LockingEnvelope.lane(envelope)
    let bit = UInt32(1) << UInt32(lane)
    if lane < Int(Lane.firstQueue) {
      setEnvelopeNext(envelope, lists[lane].head)
      lists[lane].head = envelope
    } else {
      setEnvelopeNext(envelope, nil)
      if let tail = lists[lane].tail, occupied & bit != 0 {
        setEnvelopeNext(tail, envelope)
      } else {
        lists[lane].head = envelope
      }
      lists[lane].tail = envelope
    }
    occupied |= bit
  }

  /// Puts the envelopes of a chain, in its order.
  mutating func put(chain: UnsafeMutableRawPointer) {
    var next: UnsafeMutableRawPointer? = chain
    while let envelope = next {
      next = envelopeNext(envelope)
      put(envelope)
    }
  }

  /// The first lane that holds something, or `Lane.count`.
  var firstLane: Int { occupied == 0 ? Lane.count : occupied.trailingZeroBitCount }

  /// Takes the envelope that is next by D1 to D3, with its lane.
  mutating func takeFirst() -> (envelope: UnsafeMutableRawPointer, lane: Int)? {
    guard occupied != 0 else { return nil }
    let lane = occupied.trailingZeroBitCount
    let envelope = lists[lane].head.unsafelyUnwrapped
    lists[lane].head = envelopeNext(envelope)
    if lists[lane].head == nil {
      occupied &= ~(UInt32(1) << UInt32(lane))
    }
    return (envelope, lane)
  }
}
