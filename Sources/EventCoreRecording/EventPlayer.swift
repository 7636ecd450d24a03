// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Replays a recording step by step: everything up to a time that you say, such as that of a frame.
///
/// ```swift
/// var player = recording.player(on: world)
/// while game.isRunning {
///   try player.advance(to: game.elapsed)
///   pump.run()
/// }
/// ```
///
/// It knows no clock. Events are decoded and dispatched on the calling thread, with the priority and the method of their
/// recording; the time of the dispatch is that of the central's clock.
///
/// **Threads**: a value; each copy goes on by itself.
///
/// **Order**: that of the recorded dispatch times (<doc:RecordAndReplay>).
public struct EventPlayer: Sendable {
  fileprivate let recording: EventRecording
  fileprivate let central: EventCentral
  /// How many events were replayed or passed over.
  public private(set) var position = 0

  /// The recorded dispatch time of the next event; nil after the last.
  public var nextTime: DispatchTime? {
    position < recording.count ? DispatchTime(uptimeNanoseconds: recording.entries[position].record.time) : nil
  }

  /// Dispatches the next event.
  ///
  /// - Returns: False if there is none.
  /// - Throws: If it cannot be decoded. The player has passed over it then: a further call goes on behind it.
  @discardableResult
  public mutating func step() throws(EventRecordingError) -> Bool {
    guard position < recording.count else { return false }
    let entry = recording.entries[position]
    position += 1
    do {
      // Entries are of types that were passed.
      try recording.dispatches[entry.record.type]!(recording.bytes[entry.payload], entry.record, central)
    } catch {
      let (offset, name) = (entry.payload.lowerBound, recording.names[entry.record.type])
      throw EventRecordingError(
        .undecodable, at: offset, record: entry.number,
        """
        The payload of record \(entry.number), at byte \(offset), is no \(name): \(error). Read it with the type that \
        wrote it, or go on without the event by another call.
        """)
    }
    return true
  }

  /// Dispatches the events up to a recorded time, which is included.
  ///
  /// - Parameter time: On the clock of the recording. A time before that of the last call dispatches nothing;
  ///   `.distantFuture` dispatches all that is left.
  /// - Returns: How many were dispatched.
  /// - Throws: As ``step()``. The events before are dispatched.
  @discardableResult
  public mutating func advance(to time: DispatchTime) throws(EventRecordingError) -> Int {
    let before = position
    while let next = nextTime, next <= time { try step() }
    return position - before
  }

  /// Dispatches the events up to a time since ``EventRecording/start``. All else is as for the recorded time.
  @discardableResult
  public mutating func advance(to elapsed: Duration) throws(EventRecordingError) -> Int {
    let time = Int128(recording.start.uptimeNanoseconds) + elapsed.attoseconds / 1_000_000_000
    return try advance(to: DispatchTime(uptimeNanoseconds: UInt64(clamping: time)))
  }
}

extension EventRecording {
  /// A player that begins with the first event.
  ///
  /// - Parameter central: Where it dispatches.
  public func player(on central: EventCentral = .shared) -> EventPlayer { EventPlayer(recording: self, central: central) }

  /// Dispatches the events again, at their times.
  ///
  /// - Parameters:
  ///   - central: Where to dispatch.
  ///   - speed: How many times as fast as recorded: above zero. With `.infinity` it does not wait.
  ///   - clock: Tells the time to wait for.
  /// - Returns: How many were dispatched.
  /// - Throws: `CancellationError` if the task was cancelled; ``EventRecordingError`` for an event that cannot be
  ///   decoded. The events before were dispatched.
  ///
  /// **Order**: that of the recorded dispatch times. An event that is late does not delay those after it.
  @discardableResult
  public func replay<C: Clock>(
    on central: EventCentral = .shared, speed: Double = 1, clock: C = ContinuousClock()
  ) async throws -> Int where C.Duration == Duration {
    require(
      speed > 0,
      "The speed of a replay is above zero, and this one is \(speed): pass 1 for that of the recording, or .infinity.")
    var player = player(on: central)
    let begin = clock.now
    while let next = player.nextTime {
      try Task.checkCancellation()
      let elapsed = Double(Int64(bitPattern: next.uptimeNanoseconds &- start.uptimeNanoseconds)) / speed
      // At most 292 years, since a duration does not hold the quotient by any speed.
      let due = begin.advanced(by: .nanoseconds(Int64(exactly: elapsed.rounded()) ?? (elapsed < 0 ? .min : .max)))
      if clock.now < due { try await clock.sleep(until: due, tolerance: .zero) }
      try player.step()
    }
    return player.position
  }
}
