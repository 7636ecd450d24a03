// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import MachineSamples
import Synchronization

/// Takes samples when they are due, and dispatches each as an event; between two samples it dispatches bursts
/// and load.
final class SensorThread: @unchecked Sendable {
  // The sensor thread uses the source, the writer, the samples and the plain counters; others read them after
  // `join()`. Everything else is constant or atomic.
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

  /// The first samples that were dispatched, for the comparison.
  private(set) var kept: [Sample] = []
  /// How often a receiver accepted a sample.
  private(set) var dispatched = 0
  private(set) var sampleCount = 0
  /// Why the thread ended before it was stopped.
  private(set) var failure: (any Error)?

  /// 48 MB, which are two and a half minutes of a machine with two processors.
  static let keptAtMost = 1 << 20
  private static let shortestFill = Clock.second / 2_000
  /// The longest time between two checks whether it has to stop.
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
  /// How often a sample was left out because the thread was late. After `join()`.
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
        // A burst gets half of the time between two samples, since other threads need the processor.
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
      // So a burst makes progress even if there is no time between two samples.
      _ = filler.dispatchSome()
      taken.wrappingAdd(1, ordering: .relaxed)
    }
    try writer?.finish()
  }

  private func keep() {
    sampleCount += samples.count
    guard keepsSamples else { return }
    // Without a gap from the first sample on.
    if kept.count == sampleCount - samples.count, sampleCount <= Self.keptAtMost {
      kept.append(contentsOf: samples)
    }
  }
}
