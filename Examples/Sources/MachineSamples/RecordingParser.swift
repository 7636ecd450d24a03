// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Reads a recording. Throws if it is malformed or truncated.
struct RecordingParser {
  private let file: String
  private var text: ByteScanner
  private var line = 1
  private var latest: UInt64 = 0

  init(file: String, text: ByteScanner) {
    self.file = file
    self.text = text
  }

  mutating func samples() throws -> [Sample] {
    try header()
    var samples: [Sample] = []
    while !text.isAtEnd {
      let source = String(decoding: text.word(), as: UTF8.self)
      guard !text.isAtEnd else { throw cut }
      if source == "end" {
        try end(after: samples.count)
        return samples
      }
      samples.append(try sample(of: source))
      try endOfLine()
    }
    throw error("the file is cut: its last line, \"end\" and the number of samples, is missing")
  }

  private mutating func header() throws {
    guard !text.isAtEnd else { throw error("the file is empty") }
    guard text.take("eventcore-samples ") else {
      throw error("this is not a recording: it does not begin with \"eventcore-samples\"")
    }
    let version = String(decoding: text.word(), as: UTF8.self)
    guard version == "1" else {
      throw error("version \"\(version)\" is unknown: this program reads version 1")
    }
    for field in Recording.header.split(separator: " ").dropFirst(2) {
      let found = text.word()
      guard found.elementsEqual(field.utf8) else {
        let found = String(decoding: found, as: UTF8.self)
        throw error("the header names the fields \"\(found)\" where \"\(field)\" belongs")
      }
    }
    try endOfLine()
  }

  private mutating func sample(of source: String) throws -> Sample {
    switch source {
    case "cpu":
      let event = CPUTimeEvent(
        time: try time(), index: try small("index"), busy: try field("busy"),
        total: try field("total"))
      guard event.index < Recording.mostProcessors else {
        throw error("processor \(event.index) is beyond the last, \(Recording.mostProcessors - 1)")
      }
      return .cpu(event)
    case "memory":
      return .memory(
        MemoryEvent(
          time: try time(), total: try field("total"), available: try field("available"),
          dirty: try field("dirty")))
    case "interrupts":
      return .interrupts(
        InterruptEvent(time: try time(), hard: try field("hard"), soft: try field("soft")))
    case "switches":
      return .switches(
        ContextSwitchEvent(
          time: try time(), switches: try field("switches"), forks: try field("forks"),
          running: try small("running"), blocked: try small("blocked")))
    case "network":
      return .network(
        NetworkEvent(
          time: try time(), receivedBytes: try field("received"), sentBytes: try field("sent"),
          packets: try field("packets")))
    case "disk":
      return .disk(
        DiskEvent(
          time: try time(), readBytes: try field("read"), writtenBytes: try field("written"),
          operations: try field("operations")))
    default:
      throw error("\"\(source)\" is no source of samples")
    }
  }

  private mutating func time() throws -> UInt64 {
    let time = try field("time")
    guard time >= latest else {
      throw error("the time \(time) is before \(latest), that of the line above")
    }
    guard time <= Recording.longestTime else { throw error("the time \(time) is beyond one day") }
    latest = time
    return time
  }

  private mutating func small(_ name: String) throws -> UInt32 {
    guard let value = UInt32(exactly: try field(name)) else {
      throw error("the field \"\(name)\" is too large")
    }
    return value
  }

  private mutating func field(_ name: String) throws -> UInt64 {
    let isSeparated = text.take(" ")
    guard !text.isAtEnd else { throw cut }
    guard isSeparated, !text.isAtLineEnd else { throw error("the field \"\(name)\" is missing") }
    var rest = text
    guard let value = text.number() else {
      let found = String(decoding: rest.word(), as: UTF8.self)
      throw error("the field \"\(name)\" is \"\(found)\", which is no whole number of 64 bits")
    }
    // At the end of the file the number may be incomplete.
    guard !text.isAtEnd else { throw cut }
    return value
  }

  private mutating func end(after count: Int) throws {
    let promised = try field("count")
    try endOfLine()
    line -= 1
    guard promised == UInt64(count) else {
      throw error("the last line counts \(promised) samples, and \(count) are there")
    }
    guard count > 0 else { throw error("the recording holds no samples") }
    guard text.isAtEnd else {
      line += 1
      throw error("there is text after the last line, \"end\"")
    }
  }

  private mutating func endOfLine() throws {
    guard text.isAtLineEnd else {
      let found = String(decoding: text.word(), as: UTF8.self)
      throw error("\"\(found)\" is too much: the line ends before it")
    }
    guard text.skipLine() else { throw cut }
    line += 1
  }

  private var cut: RecordingError { error("the file is cut in the middle of this line") }

  private func error(_ reason: String) -> RecordingError {
    RecordingError(file: file, line: line, reason: reason)
  }
}
