// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A relation between two figures that the project wants to hold.
struct Bar: Sendable {
  let text: String
  let limit: Double
  /// The figure to compare with the limit; nil if its rows were not measured.
  let ratio: @Sendable ([Row]) -> Double?

  /// The lock-free core takes at most `limit` times what `subject` takes in the same shape: in the
  /// same process, in runs that alternate.
  private static func atMost(_ limit: Double, _ shape: Shape, _ subject: Subject) -> Bar {
    between(limit, shape, .lockFree, subject)
  }

  /// One subject takes at most `limit` times what another takes in the same shape.
  private static func between(
    _ limit: Double, _ shape: Shape, _ subject: Subject, _ other: Subject
  ) -> Bar {
    Bar(text: "\(shape.rawValue): \(subject.rawValue) / \(other.rawValue)", limit: limit) { rows in
      guard let figure = rows.median(shape, subject), let reference = rows.median(shape, other)
      else { return nil }
      return figure / reference
    }
  }

  /// Eight listeners: 8 ns, or 0.6 of eight closures behind a hand-written mailbox; the nearer of
  /// the two.
  private static let eightListeners = Bar(
    text: "eight-listeners: lockFree / 8 ns or / 0.6 mutex-swap", limit: 1
  ) { rows in
    guard
      let figure = rows.median(.eightListeners, .lockFree),
      let reference = rows.median(.eightListeners, .mutexSwap)
    else { return nil }
    return min(figure / 8, figure / (0.6 * reference))
  }

  /// The lock-free core takes at most `limit` nanoseconds.
  private static func atMost(nanoseconds limit: Double, _ shape: Shape) -> Bar {
    Bar(text: "\(shape.rawValue): lockFree, ns", limit: limit) { $0.median(shape, .lockFree) }
  }

  /// A subject takes at most `limit` nanoseconds more than another in the same shape.
  private static func above(_ limit: Double, _ shape: Shape, _ subject: Subject, _ other: Subject = .plain) -> Bar {
    Bar(text: "\(shape.rawValue): \(subject.rawValue) - \(other.rawValue), ns", limit: limit) { rows in
      guard let figure = rows.median(shape, subject), let reference = rows.median(shape, other)
      else { return nil }
      return figure - reference
    }
  }

  /// Nothing in any of the runs.
  private static func none(
    _ text: String, _ shape: Shape, _ subject: Subject, _ payloadBytes: Int = MemoryLayout<Event24>.size
  ) -> Bar {
    Bar(text: text, limit: 0) { $0.row(shape, subject, payloadBytes)?.max }
  }

  static let all: [Bar] = [
    .atMost(1.25, .oneToOne, .rawC),
    .atMost(0.5, .oneToOne, .mutexSwap),
    .between(1.6, .oneToOne, .locking, .mutexSwap),
    .atMost(1.15, .bounded, .plain),
    .above(5, .statistics, .sampling64),
    .above(60, .tracing, .tracing),
    .above(3, .tracing, .tracing100),
    .atMost(1.0 / 30, .oneToOne, .dispatchQueue),
    .atMost(1.0 / 30, .oneToOne, .asyncStream),
    .atMost(1.0 / 3, .batch64, .plain),
    .atMost(0.6, .batch64, .mutexSwap),
    .atMost(1.3, .batch64, .rawC),
    .atMost(0.6, .fourToOne, .mutexSwap),
    .between(2.5, .fourToOne, .locking, .mutexSwap),
    .between(2.5, .eightToOne, .locking, .mutexSwap),
    .between(2.5, .sixteenToOne, .locking, .mutexSwap),
    .atMost(1, .sixteenGap, .mutexSwap),
    .atMost(1.3, .endedThreads, .quiet),
    .atMost(0.5, .eightHandlers, .mutexSwap),
    .atMost(0.6, .eightMailboxes, .mutexSwap),
    .atMost(1.8, .randomLane, .plain),
    .atMost(1.15, .idleWake, .futex),
    .atMost(2.5, .spinOneWay, .cacheLine),
    .atMost(nanoseconds: 14, .pumpFrame),
    Bar(text: "pump-frame: raw-c, ns", limit: 9) { $0.median(.pumpFrame, .rawC) },
    .between(1.1, .pumpFrame, .deadline, .lockFree),
    .between(1.1, .pumpFrame, .rawCDeadline, .rawC),
    .above(2, .pumpFrame, .deadline, .lockFree),
    .above(2, .pumpFrame, .rawCDeadline, .rawC),
    .above(2, .pumpFrame, .lockingDeadline, .locking),
    .atMost(nanoseconds: 6, .pumpBatch50),
    Bar(text: "pump-batch-50: raw-c, ns", limit: 4) { $0.median(.pumpBatch50, .rawC) },
    .atMost(1.3, .listener, .plain),
    eightListeners,
    .atMost(0.2, .sequenceOneToOne, .asyncStream),
    .atMost(0.2, .sequenceOneToEight, .asyncStream),
    .atMost(1.5, .requestReply, .futex),
    .between(1.5, .requestReply, .preferring, .futex),
    .atMost(1, .executorJob, .actor),
    .atMost(1, .executorCall, .actor),
    .atMost(1, .executorTask, .actor),
    .between(1, .executorTask, .preferring, .actor),
    .atMost(1.2, .latestOnlyFlood, .plain),
    .atMost(nanoseconds: 40, .conflatedFlood),
    Bar(text: "conflated-flood: raw-c, ns", limit: 40) { $0.median(.conflatedFlood, .rawC) },
    Bar(text: "frames-240hz-overruns: lockFree", limit: 0) { $0.median(.frames240Overruns, .lockFree) },
    Bar(text: "idle-mailbox: raw-c, bytes", limit: 1_024) { $0.median(.idleMailbox, .rawC) },
    Bar(text: "idle-central: lockFree, bytes", limit: 16_384) { $0.median(.idleCentral, .lockFree) },
    .atMost(nanoseconds: 5_000, .subscribeChurn10),
    .atMost(nanoseconds: 5_000, .subscribeChurn10000),
    .atMost(2, .subscribeChurn10Stream, .quiet),
    .atMost(2, .subscribeChurn10000Stream, .quiet),
    Bar(text: "timers-insert: lockFree, ns", limit: 1_000) {
      $0.median(.timersInsert, .lockFree)
    },
    Bar(text: "timers-cancel: lockFree, ns", limit: 1_000) {
      $0.median(.timersCancel, .lockFree)
    },
    Bar(text: "timers-late-p99: lockFree, ns", limit: 1_000_000) {
      $0.median(.timersLate99, .lockFree)
    },
    Bar(text: "timers-late-p99: locking, ns", limit: 1_000_000) {
      $0.median(.timersLate99, .locking)
    },
    .none("allocations: lockFree, 24 bytes", .allocations, .lockFree),
    Bar(text: "allocations: locking, 24 bytes", limit: 0.001) { $0.median(.allocations, .locking) },
    .none("allocations: lockFree, String", .allocations, .lockFree, MemoryLayout<StringEvent>.size),
    .none("allocations: batches made on the way, 24 bytes", .allocations, .lazyBatches),
    .atMost(nanoseconds: 8, .treeBinary),
    .atMost(nanoseconds: 8, .tree10ary),
    .atMost(nanoseconds: 8, .treeFlat),
    .atMost(nanoseconds: 10, .treeChain),
    .atMost(nanoseconds: 60, .treeConsumed),
    .atMost(nanoseconds: 4, .treePass),
    .atMost(nanoseconds: 150, .treeMake),
    .atMost(nanoseconds: 150, .treeFree),
    .atMost(2, .treeMillion, .plain),
    .atMost(2, .treeChurn, .quiet),
    .none("tree-allocations: lockFree", .treeAllocations, .lockFree),
    .none("emit-allocations: coordinators", .emitAllocations, .coordinators),
    .none("allocations: a balancer of one's own, 24 bytes", .allocations, .ownBalancer),
    .none("allocations: a balancer of one's own, String", .allocations, .ownBalancer, MemoryLayout<StringEvent>.size),
    .none("allocations: shared pool, 24 bytes", .allocations, .shared),
    .none("allocations: shared pool, String", .allocations, .shared, MemoryLayout<StringEvent>.size),
    .between(1 / 0.9, .poolEven, .roundRobin, .bareThreads),
    .between(0.5, .poolUnevenP99, .shared, .roundRobin),
  ]

  /// One line: the limit, the measured figure, and whether it holds.
  func line(_ rows: [Row]) -> String? {
    guard let ratio = ratio(rows) else { return nil }
    let verdict = ratio <= limit ? "ok" : "missed"
    return text.padded(54) + "<= \(limit.figure)".padded(12) + ratio.figure.padded(10) + verdict
  }
}

extension [Row] {
  func row(_ shape: Shape, _ subject: Subject, _ payloadBytes: Int = MemoryLayout<Event24>.size) -> Row? {
    first {
      $0.shape == shape.rawValue && $0.subject == subject.rawValue
        && $0.payloadBytes == payloadBytes
    }
  }

  func median(_ shape: Shape, _ subject: Subject) -> Double? { row(shape, subject)?.median }
}
