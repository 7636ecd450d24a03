// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// Writes the events of a central to a file, from which an ``EventRecording`` replays them.
///
/// ```swift
/// let recorder = try EventRecorder(world, of: [Input.self, Resize.self], to: file)
/// play()
/// try await recorder.finish()
/// ```
///
/// A recorder is one more receiver of its types, which asks for the time. It encodes and writes on a thread of its own,
/// or in a pump that you name. If it goes without `finish()`, the file reads as one that was cut.
///
/// **Threads**: any, for every member, but for `finish()` of a recorder in a pump.
///
/// **Order**: the file has the events as the recorder took them (D1), with the times of their dispatches. A replay is in
/// the order of these times (<doc:RecordAndReplay>).
public final class EventRecorder: Sendable {
  /// What became of the events that were dispatched to a recorder.
  public struct Counts: Sendable, Equatable {
    /// In the file, or about to be.
    public internal(set) var recorded = 0
    /// Threw an error when they were encoded. The file has their types, times and lanes.
    public internal(set) var unencodable = 0
    /// Taken since the system refused to write, or after the end.
    public internal(set) var unwritten = 0
    /// Waited in the pump at the end, or were refused, dropped or freed by it meanwhile, of any type.
    public internal(set) var left = 0
  }

  let writer: RecordingWriter
  /// The recorder's own; nil in a pump.
  private let thread: EventThread?
  private let handles: [any EventListenerHandling]
  /// What did not get from the place to its callbacks since the recorder was made.
  private let missed: @Sendable () -> MissedEvents
  private let lostBefore: UInt64

  /// Begins to record on a thread of the recorder's own.
  ///
  /// - Parameters:
  ///   - central: Where the events are dispatched.
  ///   - types: Which events to record. Prefer what comes from outside, such as input: what handlers dispatch in reply
  ///     they dispatch again in a replay.
  ///   - file: Where to write. A file that is there is replaced.
  ///   - format: For machines, or for people as well.
  ///   - start: When the recording starts, on the clock of the dispatch times, the central's; nil is now.
  /// - Throws: If the file cannot be made, or another recorder is writing it. If it cannot be written later,
  ///   `finish()` throws.
  ///
  /// It gets the events that are dispatched after this returns (D4).
  public convenience init(
    _ central: EventCentral = .shared, of types: [any RecordableEvent.Type], to file: URL,
    as format: EventRecording.Format = .binary, from start: DispatchTime? = nil
  ) throws(EventRecordingError) {
    try self.init(file, format, start ?? central.now, types) { EventThread(on: central, name: "EventRecorder") }
  }

  /// Begins to record in a pump, which encodes and writes in its runs: no thread is started.
  ///
  /// It also records what is sent to the pump alone, which a replay dispatches on a central. What the pump has no place
  /// for, or frees as it is cancelled, the recorder does not get: `finish()` throws then. All else is as for the recorder
  /// with a thread.
  ///
  /// **Threads**: those of the loop.
  public convenience init(
    on pump: EventPump, of types: [any RecordableEvent.Type], to file: URL,
    as format: EventRecording.Format = .binary, from start: DispatchTime? = nil
  ) throws(EventRecordingError) {
    try self.init(file, format, start ?? pump.central.now, types) { pump }
  }

  private init(
    _ file: URL, _ format: EventRecording.Format, _ start: DispatchTime, _ types: [any RecordableEvent.Type],
    on makePlace: () -> some LaneCallbackPlace
  ) throws(EventRecordingError) {
    let writer = try RecordingWriter(
      file.path, format, start: start.uptimeNanoseconds, types: recordingNames(of: types))
    let place = makePlace()
    self.writer = writer
    thread = place as? EventThread
    missed = place.missed
    lostBefore = missed().lost
    handles = types.enumerated().map { Self.register($1, $0, writer, place) }
    writer.place = handles[0]
    // What else waits in a pump may come after the last event that is recorded.
    place.whenDry { [weak writer] in writer?.flushWhatIsLeft() ?? false }
    // What came before the writer knew its place.
    writer.flush()
  }

  private static func register<Event: RecordableEvent>(
    _ type: Event.Type, _ number: Int, _ writer: RecordingWriter, _ place: some LaneCallbackPlace
  ) -> any EventListenerHandling {
    place.addLaneCallback { (event: Event, priority, method, time) in
      let lane = Record.lane(method, priority)
      writer.record(event, Record(time: time.uptimeNanoseconds, type: number, lane: lane))
    }
  }

  deinit {
    for handle in handles { handle.remove() }
    writer.leave()
  }

  /// What has become of the events so far. Those that wait are not counted yet. It waits while the system writes; of a
  /// pipe that is full, until somebody reads from it.
  public var counts: Counts { writer.counts }

  /// Hands to the system what was recorded so far.
  public func flush() { writer.flush() }

  /// Ends the recording: records what was dispatched before, and completes the file. Of what other threads dispatch
  /// meanwhile the file may have some and miss some that came before it: stop them first if their sequence matters.
  ///
  /// A recorder in a pump does not run the pump: call it when a run has left nothing, and before the pump is cancelled.
  /// If events wait, or were lost in the pump, or if the pump has ended, it throws.
  ///
  /// - Returns: What has become of the events. A second call returns or throws the same, outside of callbacks.
  /// - Throws: If an event is missing in the file, or may be: what a pump has lost since the recorder was made counts,
  ///   of whatever type and age. ``counts`` has the numbers.
  ///
  /// **Threads**: any; in a pump those of the loop, outside of its callbacks: inside it traps.
  @available(*, noasync, message: "It blocks its thread: write await finish() in an async function.")
  @discardableResult
  public func finish() throws(EventRecordingError) -> Counts {
    thread?.drain()
    return try end()
  }

  /// Ends the recording as the form that blocks, but without blocking the thread of the task. In a task that is
  /// cancelled it waits all the same, since nothing may be missing in the file.
  @discardableResult
  public nonisolated(nonsending) func finish() async throws(EventRecordingError) -> Counts {
    if let thread {
      if thread.central.isDeterministic {
        // Its handlers run here, also in a task that is cancelled.
        _ = await thread.drain()
      } else {
        // In a task of its own, since a drain gives up in one that is cancelled.
        _ = await Task { await thread.drain() }.value
      }
    }
    return try end()
  }

  private func end() throws(EventRecordingError) -> Counts {
    require(
      thread != nil || !missed().isInside,
      """
      EventRecorder.finish() completes the file with what a run of its pump has handled, and was called inside a callback \
      of that pump, whose event the recorder may not have yet: return from the callback, and call it after the run.
      """)
    for handle in handles { handle.remove() }
    guard thread == nil else { return try writer.end() }
    let missed = missed()
    return try writer.end(left: missed.waiting + Int(missed.lost - lostBefore), isTooLate: missed.isOver)
  }
}
