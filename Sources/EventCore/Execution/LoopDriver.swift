// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The driver of an `EventPump`, whose jobs a loop of the user's runs when it likes.
///
/// Only the loop drives the consumer. Others do not borrow it, not even to free a removed handler, since the
/// closures of the pump need not be `Sendable`.
final class LoopDriver: PumpDriver {
  /// When nothing was left the last time, or the pump was made. Written by the loop, before a look that found
  /// nothing: whatever waits now has been posted since.
  private let dry = Atomic<UInt64>(monotonicNanoseconds())

  /// The loop comes by itself.
  func schedule(_ pump: ConsumerPump) {}

  var lends: Bool { false }

  func ranDry() { emptied(at: monotonicNanoseconds()) }

  /// Notes a time at which nothing waited.
  func emptied(at time: UInt64) {
    // Relaxed, as the load: the loop alone uses it.
    dry.store(time, ordering: .relaxed)
  }

  var emptied: UInt64 { dry.load(ordering: .relaxed) }
}

extension Consumer {
  /// Where the handlers of an event thread, a `UIEventThread` or an `EventPump` run.
  var place: EventListenerContext {
    guard let pump else { return .eventThread }
    return pump.driver is LoopDriver ? .pump : .mainQueue
  }
}
