// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Testing

@testable import MachineSamples

@Suite struct RecordingTests {
  static let lines = [
    Recording.header,
    "cpu 0 1 5 12",
    "memory 0 4096 2048 0",
    "interrupts 0 7 8",
    "switches 10 9 8 7 6",
    "network 10 1 2 3",
    "disk 20 18446744073709551615 2 3",
    "end 6",
  ]

  func parse(_ lines: [String], lastLineEnds: Bool = true) throws -> [Sample] {
    let text = lines.joined(separator: "\n") + (lastLineEnds ? "\n" : "")
    return try Recording.parse(Array(text.utf8), file: "r")
  }

  /// The lines with one of them replaced, counted as an editor does.
  func lines(_ number: Int, _ text: String) -> [String] {
    var lines = Self.lines
    lines[number - 1] = text
    return lines
  }

  @Test func everySourceIsRead() throws {
    #expect(
      try parse(Self.lines) == [
        .cpu(CPUTimeEvent(time: 0, index: 1, busy: 5, total: 12)),
        .memory(MemoryEvent(time: 0, total: 4096, available: 2048, dirty: 0)),
        .interrupts(InterruptEvent(time: 0, hard: 7, soft: 8)),
        .switches(ContextSwitchEvent(time: 10, switches: 9, forks: 8, running: 7, blocked: 6)),
        .network(NetworkEvent(time: 10, receivedBytes: 1, sentBytes: 2, packets: 3)),
        .disk(DiskEvent(time: 20, readBytes: .max, writtenBytes: 2, operations: 3)),
      ])
  }

  @Test func whatIsWrittenIsReadAgain() throws {
    let samples = try parse(Self.lines)
    #expect(samples.map(\.recordingLine) == Self.lines[1...6].map { $0 + "\n" })
  }

  @Test func aFileThatIsCutAnywhereIsRefused() throws {
    let whole = Array((Self.lines.joined(separator: "\n") + "\n").utf8)
    for length in 0..<whole.count {
      let error = #expect(throws: RecordingError.self, "cut after \(length) bytes") {
        try Recording.parse(Array(whole[..<length]), file: "r")
      }
      // The header is compared word by word, and tells what it misses instead.
      if length > Recording.header.utf8.count {
        #expect(error?.reason.hasPrefix("the file is cut") == true, "cut after \(length) bytes")
      }
    }
  }

  @Test(arguments: [
    (2, "cpu 0 1 5", "the field \"total\" is missing"),
    (2, "cpu 0 1 5 x", "the field \"total\" is \"x\", which is no whole number of 64 bits"),
    (2, "cpu 0 1 5 1x", "\"x\" is too much: the line ends before it"),
    (2, "cpu 0 9000 5 1", "processor 9000 is beyond the last, 8191"),
    (
      3, "memory 0 4096 -1 0",
      "the field \"available\" is \"-1\", which is no whole number of 64 bits"
    ),
    (4, "interrupts 0 7 8 9", "\"9\" is too much: the line ends before it"),
    (5, "switches 10 9 8 7 4294967296", "the field \"blocked\" is too large"),
    (6, "network 9 1 2 3", "the time 9 is before 10, that of the line above"),
    (6, "network 86400000000001 1 2 3", "the time 86400000000001 is beyond one day"),
    (
      7, "disk 20 18446744073709551616 2 3",
      "the field \"read\" is \"18446744073709551616\", which is no whole number of 64 bits"
    ),
    (7, "tape 20 1 2 3", "\"tape\" is no source of samples"),
    (7, "", "\"\" is no source of samples"),
    (8, "end 7", "the last line counts 7 samples, and 6 are there"),
    (8, "end 6\nend 6", "there is text after the last line, \"end\""),
    (
      8, "disk 21 1 2 3",
      "the file is cut: its last line, \"end\" and the number of samples, is missing"
    ),
    (1, "hello", "this is not a recording: it does not begin with \"eventcore-samples\""),
    (1, "eventcore-samples 2", "version \"2\" is unknown: this program reads version 1"),
    (
      1, "eventcore-samples 1 cpu=time",
      "the header names the fields \"cpu=time\" where \"cpu=time,index,busy,total\" belongs"
    ),
  ])
  func aBrokenLineIsNamedWithItsReason(number: Int, text: String, reason: String) throws {
    let error = #expect(throws: RecordingError.self) { try parse(lines(number, text)) }
    #expect(error?.reason == reason)
    // Of two last lines the second is the one too many; a missing one is missed behind the last.
    let expected = text.contains("\n") || text.hasPrefix("disk 21") ? number + 1 : number
    #expect(error?.line == expected)
  }
}
