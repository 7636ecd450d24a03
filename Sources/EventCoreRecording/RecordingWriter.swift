// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

/// Writes events to the file, and counts them.
///
/// Synchronization: `state` has a mutex. The handlers, of which one runs at a time, encode without it, since that is the
/// user's code.
final class RecordingWriter: Sendable {
  private struct State {
    var frames: any FrameWriter
    let file: FileHandle
    /// Whether it is a file and no pipe, whose reader may go.
    let isRegular: Bool
    var counts = EventRecorder.Counts()
    /// How many of the events that are counted as recorded, or as unencodable, are in the buffer alone.
    var buffered = (recorded: 0, unencodable: 0)
    /// The first refusal of the system, after which nothing is written, and that of a type.
    var fileError, encodingError: String?
    /// Tells how many events wait. It refers to the writer in turn, by the handlers, until these end.
    var place: (any EventListenerHandling)?
    var hasEnded = false
    /// Whether the place had ended before, so that nobody knows what was dispatched since.
    var isTooLate = false
  }
  private let state: Guarded<State>

  /// How many bytes are written at once while events wait.
  private static let bufferSize = 1 << 16

  /// Makes the file, or empties the one that is there.
  init(
    _ path: String, _ format: EventRecording.Format, start: UInt64, types: [String]
  ) throws(EventRecordingError) {
    let frames: any FrameWriter =
      format == .binary ? BinaryFrameWriter(start: start, types: types) : LineFrameWriter(start: start, types: types)
    let (descriptor, isRegular) = try Self.open(path)
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    state = Guarded(State(frames: frames, file: file, isRegular: isRegular))
    flush()
  }

  deinit { flush() }

  /// Opens the file, and empties it once it is known that nobody else records to it.
  private static func open(_ path: String) throws(EventRecordingError) -> (descriptor: Int32, isRegular: Bool) {
    let descriptor = Foundation.open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      let found = "A recorder writes a file, and the system refused \(path): \(String(cString: strerror(errno)))."
      throw EventRecordingError(.file, "\(found) Pass a file in a folder that is there and can be written.")
    }
    var status = stat()
    // What is no file, such as /dev/null, several may write to.
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return (descriptor, false) }
    // A file system that knows no locks refuses for another reason, and records all the same.
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
      close(descriptor)
      let found = "A file is written by one recorder at a time, and another recorder is writing \(path)."
      throw EventRecordingError(.file, "\(found) Finish that one first, or pass another file.")
    }
    guard ftruncate(descriptor, 0) == 0 else {
      let found = "A recorder replaces its file, and the system refused \(path): \(String(cString: strerror(errno)))."
      close(descriptor)
      throw EventRecordingError(.file, "\(found) Pass another file.")
    }
    return (descriptor, true)
  }

  var place: (any EventListenerHandling)? {
    get { state.withLock { $0.place } }
    set { state.withLock { $0.place = newValue } }
  }

  var counts: EventRecorder.Counts { state.withLock { $0.counts } }

  /// Records an event. One handler at a time.
  func record<Event: RecordableEvent>(_ event: Event, _ record: Record) {
    let payload = Result { try encodePayload(event) }
    let isLast = place?.waitingEventCount == 0
    state.withLock { state in
      guard state.fileError == nil, !state.hasEnded else {
        state.counts.unwritten += 1
        return
      }
      switch payload {
      case .success(let bytes):
        state.frames.add(record, bytes)
        state.buffered.recorded += 1
        state.counts.recorded += 1
      case .failure(let error):
        state.frames.add(record, nil)
        state.buffered.unencodable += 1
        state.counts.unencodable += 1
        state.encodingError = state.encodingError ?? "\(Event.self): \(brief(error))"
      }
      if isLast || state.frames.bytes.count >= Self.bufferSize { Self.flush(&state) }
    }
  }

  func flush() { state.withLock { Self.flush(&$0) } }

  /// Writes what is in the buffer, if anything is. False once the recording has ended.
  func flushWhatIsLeft() -> Bool {
    state.withLock { state in
      if !state.frames.bytes.isEmpty { Self.flush(&state) }
      return !state.hasEnded
    }
  }

  private static func flush(_ state: inout State) {
    if state.fileError == nil {
      do {
        let (file, bytes) = (state.file, state.frames.bytes)
        if state.isRegular {
          try file.write(contentsOf: bytes)
        } else {
          // Costs as much again as two writes, so not for each.
          try withoutPipeSignal(of: file.fileDescriptor) { try file.write(contentsOf: bytes) }
        }
      } catch {
        state.fileError = "\(error)"
        let lost = state.buffered
        state.counts.recorded -= lost.recorded
        state.counts.unencodable -= lost.unencodable
        state.counts.unwritten += lost.recorded + lost.unencodable
      }
    }
    state.buffered = (0, 0)
    state.frames.bytes.removeAll(keepingCapacity: true)
  }

  /// Writes what there is, and leaves the file as one that was cut: nobody will end it.
  func leave() {
    state.withLock { state in
      guard !state.hasEnded else { return }
      (state.hasEnded, state.place) = (true, nil)
      Self.flush(&state)
      Self.unlock(state)
    }
  }

  /// The file may be written by others, though the recorder is still there.
  private static func unlock(_ state: State) { _ = flock(state.file.fileDescriptor, LOCK_UN) }

  /// Ends the recording once, after the handlers have ended. Throws if an event is missing.
  func end(left: Int = 0, isTooLate: Bool = false) throws(EventRecordingError) -> EventRecorder.Counts {
    let (counts, error) = state.withLock { state in
      if !state.hasEnded {
        (state.hasEnded, state.place, state.counts.left, state.isTooLate) = (true, nil, left, isTooLate)
        state.frames.end(left: left)
        Self.flush(&state)
        Self.unlock(state)
      }
      return (state.counts, Self.error(of: state))
    }
    if let error { throw error }
    return counts
  }

  private static func error(of state: State) -> EventRecordingError? {
    let counts = state.counts
    let parts = [
      state.fileError.map {
        "\(counts.unwritten == 0 ? "Its end" : "\(counts.unwritten)") could not be written: make room, and record anew. (\($0))"
      }
        ?? (counts.unwritten == 0 ? nil : "\(counts.unwritten) came after its end: call finish() when nothing encodes."),
      state.encodingError.map {
        let found = counts.unencodable == 0 ? "Of these some" : "\(counts.unencodable)"
        return "\(found) could not be encoded: mend their encode(to:). (The first: \($0))"
      },
      counts.left == 0
        ? nil
        : """
        \(counts.left) waited in the pump, or were lost there, of any type: give it room for them, run it until nothing \
        waits, then call finish(), and cancel() after that.
        """,
      state.isTooLate ? "Its pump had ended, and nobody knows what was dispatched since: call finish() before cancel()." : nil,
    ].compactMap { $0 }
    guard !parts.isEmpty else { return nil }
    let text = "A recording has all events of its types. This one has \(counts.recorded). "
    return EventRecordingError(.incomplete, text + parts.joined(separator: " "))
  }
}

/// An error in a line: an encoder's says where, and not the whole event.
private func brief(_ error: any Error) -> String {
  guard case EncodingError.invalidValue(_, let context) = error else { return "\(error)" }
  let path = context.codingPath.suffix(8).map(\.stringValue).joined(separator: ".")
  return path.isEmpty ? context.debugDescription : "\(path): \(context.debugDescription)"
}
