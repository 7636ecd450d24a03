// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import MachineSamples
import Synchronization

/// Takes samples when they are due and dispatches each as its own event; between two samples it
/// dispatches bursts and load.
final class SensorThread: @unchecked Sendable {
  // The source, the writer, the samples and the plain counters belong to the sensor thread; others
  // read them after `join()`. Everything else is constant or atomic.
  private let central: EventCentral
  private let source: any SampleSource
  private let writer: RecordingWriter?
  private let filler: Filler
  private let keepsSamples: Bool
  private var samples: [Sample] = []
  private var thread: WorkerThread?

  private let isStopped = Atomic(false)
  private let ended = Atomic(false)
  private let taken = Atomic<Int>(0)

  /// What was dispatched, as far as it is kept for the comparison.
  private(set) var kept: [Sample] = []
  /// Receivers that accepted a sample.
  private(set) var dispatched = 0
  private(set) var sampleCount = 0
  /// Why the thread ended before it was stopped.
  private(set) var failure: (any Error)?

  /// 2^20 samples are 48 MB, and two and a half minutes of a machine with two processors.
  static let keptAtMost = 1 << 20
  private static let shortestFill = Clock.second / 2_000
  /// How long it sleeps at most before it looks whether it is stopped.
  private static let longestSleep = Clock.second / 20

  init(
    on central: EventCentral, source: any SampleSource, writer: RecordingWriter?, filler: Filler,
    keepsSamples: Bool
  ) {
    self.central = central
    self.source = source
    self.writer = writer
    self.filler = filler
    self.keepsSamples = keepsSamples
    if keepsSamples { kept.reserveCapacity(Self.keptAtMost) }
  }

  /// Starts the thread. The caller stops and joins it.
  func start() {
    thread = WorkerThread { [unowned self] in
      do {
        try run()
      } catch {
        failure = error
      }
      ended.store(true, ordering: .releasing)
    }
  }

  /// **Threads**: any.
  var hasEnded: Bool { ended.load(ordering: .acquiring) }
  /// How many times it has sampled. **Threads**: any.
  var ticks: Int { taken.load(ordering: .relaxed) }
  /// How many times it was too late for a sample. After `join()`.
  var missed: Int { source.missed }

  enum Stop {
    case now, whenSamplesEnd
  }

  /// Waits for the end of the thread.
  func join(_ stop: Stop = .now) {
    if stop == .now { isStopped.store(true, ordering: .relaxed) }
    thread?.join()
    thread = nil
  }

  private func run() throws {
    let start = Clock.now()
    while let due = source.due, !isStopped.load(ordering: .relaxed) {
      let now = Clock.now() - start
      if now < due {
        // A burst gets half the time between two samples: the processor has others to serve.
        if due - now < Self.shortestFill || !filler.dispatchSome() {
          Clock.sleep(until: start + min(due, now + Self.longestSleep))
        }
        continue
      }
      samples.removeAll(keepingCapacity: true)
      try source.take(at: now, into: &samples)
      for sample in samples {
        dispatched += sample.dispatch(on: central)
      }
      try writer?.append(samples)
      keep()
      filler.dispatchLoad()
      // However busy the machine is, a burst comes to its end.
      _ = filler.dispatchSome()
      taken.wrappingAdd(1, ordering: .relaxed)
    }
    try writer?.finish()
  }

  private func keep() {
    sampleCount += samples.count
    guard keepsSamples else { return }
    // From the first one on and without a gap: rather the beginning than pieces.
    if kept.count == sampleCount - samples.count, sampleCount <= Self.keptAtMost {
      kept.append(contentsOf: samples)
    }
  }
}
