// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// What is known of a receiver while its central is observed: its name, its probes, and the handler that runs.
///
/// Synchronization: `key` and `began` are written by the consumer's thread, relaxed except as `call` says; the rest is
/// constant or has a lock.
final class ConsumerProbe: Sendable {
  /// Unique in the process; it grows.
  let number: Int
  /// The receiver's name, and which one of that name it is in its central, from 1.
  let name: String
  let ordinal: Int
  /// The number of that central's instruments.
  let central: UInt64
  /// Name and ordinal.
  var label: String { Self.label(name, ordinal) }
  static func label(_ name: String, _ ordinal: Int) -> String { ordinal == 1 ? name : "\(name) \(ordinal)" }
  /// As whom it has dispatched: of those that have ended there may be any number, which go together.
  var source: String { isOver ? "\(name) (ended)" : label }
  private let probes = Guarded<[ReceiverProbe]>([])
  /// Whether there are any, or somebody has looked on. Relaxed: the consumer's thread counts in none that it has not seen.
  private let isCounting = Atomic<Bool>(false)
  private let hasEnded = Atomic<Bool>(false)
  /// The type whose handlers run, and since when; 0 if none does, or if nobody wants to know.
  private let key = Atomic<UInt>(0)
  private let began = Atomic<UInt64>(0)

  private static let count = Atomic<Int>(0)

  init(_ name: String, _ ordinal: Int, of central: UInt64) {
    (self.ordinal, self.central) = (ordinal, central)
    number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    self.name = name
  }

  /// Whether the receiver has ended, so that nothing is counted for it any more.
  var isOver: Bool { hasEnded.load(ordering: .relaxed) }

  /// True for the first call.
  func end() -> Bool { !hasEnded.exchange(true, ordering: .relaxed) }

  /// Notes that somebody looks on, of a receiver that counts nothing by type.
  func noteObserved() { isCounting.store(true, ordering: .relaxed) }

  /// Whether anything was ever counted by type, or somebody has looked on.
  var hasProbes: Bool { isCounting.load(ordering: .relaxed) }

  /// What all of them have counted.
  var total: (delivered: UInt64, skipped: UInt64) {
    guard hasProbes else { return (0, 0) }
    return probes.withLock { probes in
      var total: (delivered: UInt64, skipped: UInt64) = (0, 0)
      for probe in probes {
        total.delivered &+= probe.counts[HandledCounts.delivered]
        total.skipped &+= probe.counts[HandledCounts.skipped]
      }
      return total
    }
  }

  func makeProbe(_ key: UInt) -> ReceiverProbe {
    let probe = ReceiverProbe(key, of: self)
    probes.withLock { $0.append(probe) }
    isCounting.store(true, ordering: .relaxed)
    return probe
  }

  /// What was counted, by type.
  var handled: [UInt: HandledReading] {
    // A receiver has several probes for a type that handlers want only the newest events of.
    Dictionary(probes.withLock { $0 }.map { ($0.key, $0.reading) }, uniquingKeysWith: +)
  }

  // MARK: The handler that runs

  func willHandle(_ key: UInt, at time: UInt64) {
    // Releasing, pairs with `call`: the end of the call before comes first.
    self.key.store(key, ordering: .releasing)
    // Releasing, pairs with `call`: the type before the time.
    began.store(time, ordering: .releasing)
  }

  func didHandle() { began.store(0, ordering: .releasing) }

  /// The type whose handlers run, and since when. Any thread.
  var call: (key: UInt, began: UInt64)? {
    // Acquiring, pairs with `willHandle`. If the time is the same before and after, the type is that of the call, or of
    // one that began later within the same nanosecond.
    let time = began.load(ordering: .acquiring)
    let key = key.load(ordering: .acquiring)
    guard time != 0, began.load(ordering: .relaxed) == time else { return nil }
    return (key, time)
  }
}
