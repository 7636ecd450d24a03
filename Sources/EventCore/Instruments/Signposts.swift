// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(os)
  import os
#endif

/// What a trace also tells the system where that has signposts, for Instruments: each dispatch, and each handling as an
/// interval, with how long its event waited. Elsewhere nothing.
enum Signposts {
  #if canImport(os)
    typealias Handling = OSSignpostIntervalState

    private static let poster = OSSignposter(subsystem: "EventCore", category: "Events")

    static func noteDispatch(_ key: UInt) {
      guard poster.isEnabled else { return }
      poster.emitEvent("dispatch", "\(eventTypeName(key), privacy: .public)")
    }

    /// Nil if nobody looks.
    static func beginHandling(_ key: UInt, at receiver: ConsumerProbe, waited: UInt64) -> Handling? {
      guard poster.isEnabled else { return nil }
      // An identity of its own, since several receivers handle events at the same time.
      return poster.beginInterval(
        "handler", id: poster.makeSignpostID(),
        "\(eventTypeName(key), privacy: .public) at \(receiver.label, privacy: .public), waited \(waited, privacy: .public) ns"
      )
    }

    static func endHandling(_ handling: Handling?) {
      if let handling { poster.endInterval("handler", handling) }
    }
  #else
    typealias Handling = Never

    static func noteDispatch(_ key: UInt) {}
    static func beginHandling(_ key: UInt, at receiver: ConsumerProbe, waited: UInt64) -> Handling? { nil }
    static func endHandling(_ handling: Handling?) {}
  #endif
}
