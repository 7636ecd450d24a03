// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What happens inside a central: who dispatches which events, and what its receivers do with them.
///
/// ``EventCentral/statistics`` makes them. What is counted for each type is counted while the central is observed
/// (``EventCentral/observe(times:)``); mailboxes always count. All are exact while nothing is dispatched or handled,
/// and a momentary reading otherwise. What is just being dispatched to a receiver as it ends may be missing for good.
public struct EventStatistics: Sendable, Equatable, Codable, CustomStringConvertible {
  /// The receivers by age: event threads, pumps, the places of listeners, sequences, and the shared mailboxes of pools,
  /// each before the pool's threads, which handle what it counts. Those that have ended follow; the figures of all that
  /// had the same name are added up, from the first one on that lived while the central was observed. Those that ended
  /// before that one are missing.
  public var receivers: [Receiver]
  /// Who has dispatched events of which types, to at least one receiver, while the central was observed.
  public var dispatches: [Dispatches]

  /// What one receiver has done.
  public struct Receiver: Sendable, Equatable, Codable {
    /// The name of its thread, queue or listener. Further ones of the same name have a number.
    public var name: String
    /// Whether it has ended.
    public var hasEnded: Bool
    /// What came to its mailbox. A thread of a pool that shares a mailbox has one for what is sent to it alone.
    public var mailbox: EventMailboxStatistics
    /// What became of the events, of all types, from its beginning.
    public var counts: EventThreadStatistics
    /// What became of the events of each type while the central was observed.
    public var types: [Handled]
  }

  /// What became of the events of one type at one receiver. An event counts once, however many handlers the receiver
  /// has for it, and once more for each handler that wants only the newest (``EventListenerInterest/latestOnly``,
  /// ``EventListenerInterest/latestPerKey``), which gets the events apart from the others.
  ///
  /// Of an `async` handler it counts what its task has taken, also if the call has not begun, or never does since the
  /// listener has ended: ``Receiver/counts`` has such an event as waiting or cancelled.
  public struct Handled: Sendable, Equatable, Codable {
    /// The type, with its module. Several types may have one name, such as private ones of two files.
    public var type: String
    /// Events for which at least one handler was called.
    public var delivered: UInt64
    /// Events that all handlers skipped. Those that a newer one superseded (`.latestOnly`, `.latestPerKey`) count in
    /// ``EventStatistics/Receiver/counts`` alone.
    public var skipped: UInt64
    /// From the dispatch to the handler, of the delivered events that were timed.
    public var waitingTime: EventHistogram
    /// From the first handler's beginning to the last one's end, of the same events.
    public var handlingTime: EventHistogram
  }

  /// How often somebody has dispatched events of one type.
  public struct Dispatches: Sendable, Equatable, Codable {
    /// The type, with its module. Several types may have one name, such as private ones of two files.
    public var type: String
    /// The receiver whose handler dispatched; nil outside of handlers, in `async` ones and in those of another central.
    /// Those of a name that have ended go together, with “(ended)” behind it.
    public var source: String?
    /// How many events.
    public var count: UInt64
  }

  /// How many events of a type were dispatched to at least one receiver while the central was observed. Those of other
  /// types of its name count, too: private ones of other files, and those inside functions.
  ///
  /// - Parameter type: The type of the events.
  public func dispatched<E: Eventable>(_ type: E.Type) -> UInt64 {
    let name = eventTypeName(eventKey(type))
    // What was read from elsewhere may count any number.
    return dispatches.reduce(0) { $1.type == name ? $0 &+ $1.count : $0 }
  }

  /// A table with a line for each type at each receiver.
  public var description: String {
    var lines = [
      ["receiver", "event", "delivered", "skipped", "dropped", "waiting", "most", "wait 50 %", "99 %", "handle 50 %", "99 %"]
    ]
    for receiver in receivers {
      let mailbox = receiver.mailbox
      lines.append([
        receiver.name.escaped([:]) + (receiver.hasEnded ? " (ended)" : ""), "", "\(receiver.counts.delivered)",
        "\(receiver.counts.skipped)", "\(mailbox.dropped &+ mailbox.refused &+ receiver.counts.cancelled)",
        "\(mailbox.waiting)", mailbox.highWaterMark == 0 ? "" : "\(mailbox.highWaterMark)", "", "", "", "",
      ])
      for handled in receiver.types {
        var line = ["", handled.type.escaped([:]), "\(handled.delivered)", "\(handled.skipped)", "", "", ""]
        for histogram in [handled.waitingTime, handled.handlingTime] {
          for percentile in [50.0, 99] {
            line.append(histogram.count == 0 ? "" : histogram.value(atPercentile: percentile).brief)
          }
        }
        lines.append(line)
      }
    }
    let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    return lines.map { line in
      var text = ""
      for (column, cell) in line.enumerated() {
        let space = String(repeating: " ", count: widths[column] - cell.count)
        // Words to the left, numbers to the right.
        text += (column < 2 ? cell + space : space + cell) + "  "
      }
      while text.last == " " { text.removeLast() }
      return text
    }.joined(separator: "\n")
  }
}

extension EventStatistics {
  /// - Parameter byName: Whether receivers of one name are added up, those that have ended included.
  init(_ instruments: Instruments, byName: Bool = false) {
    let readings = byName ? instruments.readingsByName : instruments.readings
    receivers = readings.map { Receiver($0.name, hasEnded: $0.hasEnded, $0.reading) }
    struct Key: Hashable {
      let type: String
      let source: String?
    }
    let sums = Dictionary(
      instruments.dispatches(byName: byName).map { (Key(type: eventTypeName($0.key), source: $0.source), $0.count) },
      uniquingKeysWith: +)
    dispatches = sums.map { Dispatches(type: $0.key.type, source: $0.key.source, count: $0.value) }
      .sorted { ($0.type, $0.source ?? "") < ($1.type, $1.source ?? "") }
  }
}

extension EventStatistics.Receiver {
  fileprivate init(_ name: String, hasEnded: Bool, _ reading: ReceiverReading) {
    self.name = name
    self.hasEnded = hasEnded
    (mailbox, counts) = (reading.mailbox, reading.counts)
    let sums = Dictionary(reading.handled.map { (eventTypeName($0.key), $0.value) }, uniquingKeysWith: +)
    types = sums.map { name, handled in
      EventStatistics.Handled(
        type: name, delivered: handled.delivered, skipped: handled.skipped,
        waitingTime: handled.waiting, handlingTime: handled.handling)
    }.sorted { $0.type < $1.type }
  }
}
