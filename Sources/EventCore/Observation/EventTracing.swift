// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A trace of what happens inside a central, for <https://ui.perfetto.dev>: a slice for each dispatch and each handling
/// of an event, on the tracks of their threads, and an arrow from the one to the other.
///
/// In a deterministic central the tracks are its receivers, by their names, and one for what is dispatched outside of
/// handlers. With its ``ManualClock`` the same seed gives the same file, byte for byte, in each run and on both cores.
///
/// ``EventCentral/startTracing(_:limit:)`` begins one. Released without a ``finish(_:)`` it is discarded.
///
/// **Threads**: any, for every member.
public final class EventTracing: Sendable {
  private let buffer: TraceBuffer
  private let observation: EventObservation

  fileprivate init(_ central: EventCentral, _ sampling: EventSampling, limit: Int) {
    let buffer = TraceBuffer(start: central.basis.now, limit: limit, seed: central.serial?.seed)
    self.buffer = buffer
    observation = EventObservation(central, Instruments.Wish(sampling: sampling.period, trace: buffer))
  }

  deinit {
    observation.end()
    _ = buffer.end()
  }

  /// What was written.
  public struct Summary: Sendable, Equatable {
    /// How many slices of dispatches.
    public var dispatches = 0
    /// How many slices of handlings.
    public var handlings = 0
    /// How many slices were lost, because the limit was reached.
    public var lost = 0
  }

  /// A file that could not be written.
  public struct FileError: Error, Equatable, CustomStringConvertible {
    /// The file.
    public let path: String
    /// The error's number of the system (`errno`).
    public let code: Int32
    /// The file, and what the system says.
    public var description: String { "The trace could not be written to \(path): \(String(cString: strerror(code)))." }
  }

  /// Ends the trace, and writes it as JSON, in the format of Chrome's trace events, which Perfetto opens.
  ///
  /// - Parameter write: Takes the text in parts, some kilobytes each.
  /// - Returns: What was written. A trace that was finished before has no slices any more, and is written without any.
  ///
  /// **Complexity**: O(slices), some microseconds each. What is dispatched or handled at the same moment may be
  /// missing.
  @discardableResult
  public func finish(_ write: (_ part: String) throws -> Void) rethrows -> Summary {
    observation.end()
    return try TraceWriter(buffer).write(write)
  }

  /// Ends the trace, and writes it to a file, which is replaced if there is one.
  ///
  /// - Parameter path: The file's path.
  /// - Returns: What was written: no slices the second time.
  /// - Throws: ``FileError``. What was collected is lost then.
  @discardableResult
  public func finish(writingTo path: String) throws -> Summary {
    guard let file = fopen(path, "w") else {
      let code = errno
      _ = finish { _ in }
      throw FileError(path: path, code: code)
    }
    var code: Int32 = 0
    let summary = withoutPipeSignal(of: fileno(file)) {
      let summary = finish { part in
        if code == 0, fputs(part, file) < 0 { code = errno }
      }
      if fclose(file) != 0, code == 0 { code = errno }
      return summary
    }
    guard code == 0 else { throw FileError(path: path, code: code) }
    return summary
  }
}

extension EventCentral {
  /// Traces what is dispatched and handled from now on.
  ///
  /// ```swift
  /// let tracing = world.startTracing()
  /// play()
  /// try tracing.finish(writingTo: "world.json")   // open it at ui.perfetto.dev
  /// ```
  ///
  /// - Parameters:
  ///   - sampling: Which events: all of them, or one of so many, with its handlings. A central samples once for all who
  ///     look on: beside an observation that times more (``observe(times:)``, also that of EventCoreMetrics), the trace
  ///     has the slices of those events as well, and reaches its limit sooner.
  ///   - limit: How many slices are kept at most; a dispatch takes 8 bytes, or 16 if the thread's last one was of another
  ///     type, and a handling 8 bytes more. Later ones are lost, and counted. A thread takes room in parts: for 16 slices,
  ///     then for twice as many each time, up to an eighth of what is left, or 1,024. What it leaves of its last part is
  ///     lost for others.
  /// - Returns: The trace, of which a central has one at a time; a second one traps.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// The times are those of the central's clock. A thread that measures often reads the system's clock once a
  /// millisecond, and goes by the processor's counter of ticks in between, where that has one rate (x86-64): it is then
  /// less than two microseconds off, mostly less than 50 nanoseconds. No handler begins before its dispatch in the file.
  /// In a deterministic central the same seed gives the same file, unless `async` listeners or loops over sequences take
  /// events, which they do by themselves.
  ///
  /// **Complexity**: as ``observe(times:)`` with the sampling. Each thread writes to memory of its own; one that
  /// writes to two traces in turn takes a mutex for each record.
  public func startTracing(_ sampling: EventSampling = .all, limit: Int = 1_000_000) -> EventTracing {
    require(
      sampling != .none && limit > 0,
      "A trace has slices of some events: pass .all or .every(100), and a limit above 0; this one has \(sampling), \(limit).")
    return EventTracing(self, sampling, limit: limit)
  }
}

/// Writes what a trace has collected.
private struct TraceWriter {
  private let chunks: [TraceChunk]
  private let probes: [UInt: (key: UInt, label: String)]
  private let start: UInt64
  private let lost: Int
  private let number: UInt64

  init(_ buffer: TraceBuffer) {
    let collected = buffer.end()
    chunks = collected.chunks
    probes = Dictionary(
      collected.probes.map { (TraceRecord.address(of: $0), ($0.key, $0.label)) }, uniquingKeysWith: { first, _ in first })
    (start, lost, number) = (buffer.start, collected.lost, buffer.seed ?? buffer.number)
  }

  /// Where and when an event was dispatched.
  private struct Origin: Hashable {
    let key: UInt
    let time: UInt64
  }

  func write(_ write: (String) throws -> Void) rethrows -> EventTracing.Summary {
    var (summary, text, separator) = (EventTracing.Summary(lost: lost), "{\"traceEvents\":[\n", "")
    func add(_ line: String) throws {
      text += separator + line
      separator = ",\n"
      if text.utf8.count >= 1 << 14 {
        try write(text)
        text = ""
      }
    }
    var types: [UInt: String] = [:]
    var threads: [UInt: Int] = [:]
    var origins: [Origin: Int] = [:]
    for chunk in chunks {
      if threads[chunk.thread] == nil {
        let number = threads.count + 1
        threads[chunk.thread] = number
        let name = chunk.name.isEmpty ? "thread \(number)" : chunk.name
        try add(#"{"ph":"M","name":"thread_name","pid":1,"tid":\#(number),"args":{"name":\#(quoted(name))}}"#)
      }
      for record in chunk.all {
        guard let key = record.key else { continue }
        let origin = Origin(key: key, time: record.begin)
        // On a clock that stands still two threads may dispatch at one time, and 0 stands for either.
        let isOnly = origins[origin].map { $0 == threads[chunk.thread] } ?? true
        origins[origin] = isOnly ? threads[chunk.thread] : 0
      }
    }
    func type(_ key: UInt) -> String {
      let type = types[key] ?? quoted(eventTypeName(key))
      types[key] = type
      return type
    }
    var flow = 0
    for chunk in chunks {
      let thread = threads[chunk.thread] ?? 0
      for record in chunk.all {
        if let key = record.key {
          summary.dispatches += 1
          try add(
            #"{"ph":"X","cat":"dispatch","name":\#(type(key)),"pid":1,"tid":\#(thread),"#
              + #""ts":\#(time(record.begin)),"dur":0.001}"#)
          continue
        }
        // Nil if the trace ended before it knew the receiver.
        guard let probe = probes[record.probe] else { continue }
        summary.handlings += 1
        let (receiver, type, dispatched) = (quoted(probe.label), type(probe.key), record.dispatched)
        try add(
          #"{"ph":"X","cat":"handler","name":\#(type),"pid":1,"tid":\#(thread),"ts":\#(time(record.begin)),"#
            + #""dur":\#(microseconds(record.handled)),"args":{"receiver":\#(receiver),"#
            + #""waited_us":\#(microseconds(record.waited))}}"#)
        guard let origin = origins[Origin(key: probe.key, time: dispatched)], origin != 0 else { continue }
        flow += 1
        // The numbers of arrows are unique in the process, or for a seed, for those who join several traces.
        let arrow = #""cat":"event","name":\#(type),"id":"\#(number).\#(flow)","pid":1"#
        try add(#"{"ph":"s",\#(arrow),"tid":\#(origin),"ts":\#(time(dispatched))}"#)
        try add(#"{"ph":"f","bp":"e",\#(arrow),"tid":\#(thread),"ts":\#(time(record.begin))}"#)
      }
    }
    try write(text + "\n],\"displayTimeUnit\":\"ns\"}\n")
    return summary
  }

  /// From the beginning of the trace, in microseconds.
  private func time(_ nanoseconds: UInt64) -> String {
    microseconds(nanoseconds &- min(nanoseconds, start))
  }

  private func microseconds(_ nanoseconds: UInt64) -> String {
    let rest = String(nanoseconds % 1000)
    return "\(nanoseconds / 1000)." + String(repeating: "0", count: 3 - rest.utf8.count) + rest
  }

  /// A string in JSON.
  private func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\u{0}"..<" ":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
