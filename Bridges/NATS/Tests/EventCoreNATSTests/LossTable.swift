// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import Testing

/// Which tests hold which cell of “What may be lost or doubled” in BeyondOneMachine.md.
@Suite struct LossTable {
  /// A row has the first cell of one there. The columns: plain, with a group, with a stream, to a parent coordinator.
  private static let rows: [(String, [String])] = [
    (
      "the server is away, or slow",
      [
        "LossTests.outboxHolds LossTests.waitsForServer LossTests.partitionOfFullNetwork",
        "LossCellTests.groupAway LossTests.partitionOfGroup",
        "LossCellTests.streamAway LossTests.partitionOfStream",
        "CoordinatorTests.waits CoordinatorTests.late",
      ]
    ),
    (
      "the outbox is full",
      [
        "LossTests.outboxFull", "LossCellTests.groupAway", "LossCellTests.streamAway",
        "CoordinatorTests.full CoordinatorTests.displaced",
      ]
    ),
    (
      "the connection breaks",
      ["LossTests.cut", "LossTests.cut", "LossTests.storedAgain LossTests.cutReceiver", "LossTests.cutFromParent"]
    ),
    (
      "the server is killed",
      [
        "LossTests.plainUnderKills", "LossCellTests.groupKilled",
        "LossCellTests.streamKilled LossTests.durableUnderKills", "CoordinatorTests.serverDies",
      ]
    ),
    (
      "a partition of less than three heartbeats",
      [
        "LossTests.partition", "LossTests.partitionOfGroup",
        "LossTests.partitionOfStream LossCellTests.longerThanPatience", "CoordinatorTests.breaks",
      ]
    ),
    (
      "no receiver is connected",
      [
        "LossCellTests.nobody", "LossCellTests.nobody",
        "LossTests.receiverAway LossTests.mostMessages LossTests.age LossTests.full", "CoordinatorTests.nobody",
      ]
    ),
    (
      "a receiver's machine ends with events",
      ["LossCellTests.ends", "LossCellTests.ends", "LossTests.receiverEnds", "CoordinatorTests.breaks"]
    ),
    (
      "a receiver is slower than the sender",
      [
        "LossTests.overrun", "LossTests.overrun", "LossCellTests.slow LossTests.slowerThanLimit",
        "CoordinatorTests.overrun",
      ]
    ),
    (
      "a local receiver refuses it, or there is none",
      [
        "LossCellTests.refused", "LossCellTests.refused", "LossCellTests.streamRefused LossTests.givenBack",
        "CoordinatorTests.answers",
      ]
    ),
    (
      "a receiver cannot read it: another form, or too long",
      [
        "VersionTests.missingField MaliceTests.undecodable MaliceTests.big", "LossCellTests.unreadable",
        "StreamTests.unreadable", "CoordinatorTests.malice",
      ]
    ),
    (
      "a central is subscribed to it twice, by one bridge or two",
      ["LossCellTests.twice", "LossCellTests.twice", "LossCellTests.streamTwice", "LossCellTests.parentTwice"]
    ),
    (
      "the server forbids its subject to the sender",
      ["LossCellTests.forbidden", "LossCellTests.forbidden", "StreamTests.forbidden", "CoordinatorTests.forbidden"]
    ),
    (
      "``NATSBridge/drain(within:)``",
      [
        "LossTests.partition LossCellTests.forbidden OutboxTests.serverDiesDuringDrain DrainTests.neverSent",
        "LossTests.partitionOfGroup DrainTests.worker", "DrainTests.waitsForHandlers DrainTests.keptEvent",
        "CoordinatorTests.breaks DrainTests.toldAsClosed",
      ]
    ),
    (
      "``NATSBridge/close()``",
      [
        "LossTests.close LossTests.closedInLastMillisecond", "LossCellTests.closed LossTests.closedInLastMillisecond",
        "LossTests.close", "CoordinatorTests.ends",
      ]
    ),
    (
      "the sender's process is killed",
      ["LossTests.lastMillisecond", "LossTests.lastMillisecond", "LossTests.killedSender", "LossTests.killedChild"]
    ),
  ]

  private static let tests = URL(filePath: #filePath).deletingLastPathComponent()

  @Test("each row of the article has its tests here, in its order")
  func article() throws {
    let file = Self.tests.appending(path: "../../Sources/EventCoreNATS/EventCoreNATS.docc/BeyondOneMachine.md")
    let text = try String(contentsOf: file.standardizedFileURL, encoding: .utf8)
    let section = try #require(text.components(separatedBy: "### What may be lost or doubled\n").last)
    // Without its head.
    let lines = section.split(separator: "\n").prefix { $0.hasPrefix("|") }.dropFirst(2)
    let cells = lines.map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
    #expect(cells.map { $0[0] } == Self.rows.map(\.0))
    for (row, cells) in zip(Self.rows, cells) { #expect(row.1.count == cells.count - 1, "\(row.0)") }
  }

  @Test("the tests that it names are there")
  func names() throws {
    var suites: [Substring: String] = [:]
    for file in try FileManager.default.contentsOfDirectory(at: Self.tests, includingPropertiesForKeys: nil) {
      let suite = file.deletingPathExtension().lastPathComponent.prefix { $0 != "+" }
      suites[suite, default: ""] += try String(contentsOf: file, encoding: .utf8)
    }
    for name in Self.rows.flatMap(\.1).flatMap({ $0.split(separator: " ") }) {
      let words = name.split(separator: ".")
      #expect(suites[words[0]]?.contains("  func \(words[1])(") == true, "\(name)")
    }
  }
}
