// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// One-to-one, and what differs from it only in numbers.
//
//     one-to-one        producer ──► consumer: handler
//
//     four-to-one       producer ──┐
//                       producer ──┼──► consumer: handler
//                       producer ──┤
//                       producer ──┘
//
//     eight-to-one, sixteen-to-one, thirty-two-to-one: as four-to-one, with more producers than
//     the machine has processors
//
//     eight-handlers    producer ──► consumer: handler 1, handler 2, ... handler 8
//
//     eight-mailboxes   producer ──┬──► consumer 1: handler
//                                  ├──► ...
//                                  └──► consumer 8: handler

/// The candidates of these shapes for one type of event.
func plainCandidates<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  oneToOne(type, scale) + manyToOne(.fourToOne, 4, type, scale) + eightHandlers(type, scale)
    + eightMailboxes(type, scale)
}

private func oneToOne<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  candidates(.oneToOne, type) { Load(events: scale.events($0)) }
}

private func manyToOne<E: BenchmarkEvent>(
  _ shape: Shape, _ producers: Int, _ type: E.Type, _ scale: Scale
) -> [Candidate] {
  // Synchronous subjects have no consumer and would run several handlers at once: another shape.
  candidates(shape, type) { Load(events: scale.events($0), producers: producers) }
    .filter { !$0.subject.isSynchronous }
}

/// More producers than processors: EventCore and what is nearest to it.
func crowdCandidates<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  let crowds = [(Shape.eightToOne, 8), (.sixteenToOne, 16), (.thirtyTwoToOne, 32)]
  return crowds.flatMap { manyToOne($0.0, $0.1, type, scale) }
    .filter { [.lockFree, .locking, .mutexSwap].contains($0.subject) }
}

private func eightHandlers<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  candidates(.eightHandlers, type) { Load(events: scale.events($0) / 2, handlers: 8) }
}

private func eightMailboxes<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  candidates(.eightMailboxes, type) { Load(events: scale.events($0) / 32, consumers: 8) }
    .filter { !$0.subject.isSynchronous }
}

/// One candidate for each subject; `counting` measures allocations instead of time.
func candidates<E: BenchmarkEvent>(
  _ shape: Shape, _ type: E.Type, counting: Bool = false,
  load: @escaping (Subject) -> Load
) -> [Candidate] {
  let name = shape.rawValue
  let bytes = MemoryLayout<E>.size
  func candidate(_ subject: Subject, _ make: @escaping (Load) -> any Trial) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: bytes) { make(load(subject)) }
  }
  let all: [Candidate] = [
    candidate(.lockFree) {
      Throughput(name, $0, counting: counting) { EventCoreChannel<E>(.lockFree, $0) }
    },
    candidate(.locking) {
      Throughput(name, $0, counting: counting) { EventCoreChannel<E>(.locking, $0) }
    },
    candidate(.mutexSwap) {
      Throughput(name, $0, counting: counting) { MutexSwapChannel<E>($0) }
    },
    candidate(.dispatchQueue) {
      Throughput(name, $0, counting: counting) { DispatchQueueChannel<E>($0) }
    },
    candidate(.notificationCenter) {
      Throughput(name, $0, counting: counting) { NotificationCenterChannel<E>($0) }
    },
    candidate(.asyncStream) {
      Throughput(name, $0, counting: counting) { AsyncStreamChannel<E>($0) }
    },
    candidate(.actor) {
      Throughput(name, $0, counting: counting) { ActorChannel<E>($0) }
    },
    candidate(.nio) {
      Throughput(name, $0, counting: counting) { NIOChannel<E>($0) }
    },
    candidate(.openCombine) {
      Throughput(name, $0, counting: counting) { OpenCombineChannel<E>($0) }
    },
  ]
  // C has no String, and counts no allocations that Swift would not make too.
  guard E.self != StringEvent.self, !counting else { return all }
  return all + [candidate(.rawC) { RawTrial($0, payloadBytes: bytes) }]
}
