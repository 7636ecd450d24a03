// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import StatisticsSocket
import Testing

@testable import EventCoreTop

/// What the program makes of frames, which are another process's.
@Suite("eventcore-top: a page")
struct TopPageTests {
  private func frame(time: UInt64, delivered: [UInt64], dropped: UInt64 = 0) throws -> Frame {
    let receivers = delivered.map { delivered in
      """
      {"name": "kitchen", "hasEnded": false, "types": [],
       "mailbox": {"accepted": 0, "refused": \(dropped), "dropped": \(dropped), "waiting": 0, "highWaterMark": 0},
       "counts": {"delivered": \(delivered), "skipped": 0, "cancelled": \(dropped)}}
      """
    }
    let text = """
      {"name": "world", "process": 7, "time": \(time), "slow": [],
       "statistics": {"dispatches": [], "receivers": [\(receivers.joined(separator: ", "))]}}
      """
    return try JSONDecoder().decode(Frame.self, from: Data(text.utf8))
  }

  @Test("the heading says how many events were handled, and how many in a second since the last frame")
  func rate() throws {
    let last = try frame(time: 1_000_000_000, delivered: [100, 20])
    let next = try frame(time: 1_500_000_000, delivered: [150, 30])
    #expect(Top.page(last, after: nil)[0] == "world (7)   120 events handled")
    #expect(Top.page(next, after: last)[0] == "world (7)   180 events handled, 120 a second")
  }

  @Test("a time that goes back has no rate, and ends nothing")
  func timeGoesBack() throws {
    let last = try frame(time: 2_000_000_000, delivered: [5])
    let next = try frame(time: 1_000_000_000, delivered: [6])
    #expect(Top.page(next, after: last)[0] == "world (7)   6 events handled")
    #expect(Top.page(last, after: last)[0] == "world (7)   5 events handled")
  }

  @Test("a line is cut to the columns of the terminal, of which a wide character takes two")
  func wideCharacters() {
    for (line, columns, cut) in [
      ("kitchen", 7, "kitchen"), ("kitchen", 6, "kitche"), ("漢字漢字", 8, "漢字漢字"), ("漢字漢字", 7, "漢字漢"),
      ("a漢字", 4, "a漢"), ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"), ("🚀🚀", 3, "🚀"), ("", 3, ""),
      ("漢", 1, ""),
    ] {
      #expect(Top.cut(line, to: columns).unicodeScalars.elementsEqual(cut.unicodeScalars), "\(line) to \(columns)")
    }
  }

  @Test("what moves the cursor, breaks a line or turns it around stays out")
  func formatting() {
    #expect(Top.cut("a\u{1B}[2J\u{9B}b\u{202E}c\u{2028}d\u{2029}e\u{200D}f\r\ng", to: 80) == "a[2Jbcdefg")
  }

  @Test("counts at the end of their range wrap, and a rate that no number holds is left out")
  func largeCounts() throws {
    let last = try frame(time: 1, delivered: [0])
    let next = try frame(time: 2, delivered: [.max], dropped: .max)
    #expect(Top.page(next, after: last)[0] == "world (7)   \(UInt64.max) events handled")
    #expect(Top.page(try frame(time: 2, delivered: [.max, 3]), after: nil)[0] == "world (7)   2 events handled")
  }
}
