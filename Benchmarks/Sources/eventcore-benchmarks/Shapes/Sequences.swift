// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Tasks that iterate over a sequence.
//
//     sequence-one-to-one      producer ──► task: for await
//
//     sequence-one-to-eight    producer ──┬──► task 1: for await
//                                         ├──► ...
//                                         └──► task 8: for await

/// The candidates of both shapes for one type of event.
func sequenceCandidates<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  candidates(.sequenceOneToOne, type, scale, consumers: 1)
    + candidates(.sequenceOneToEight, type, scale, consumers: 8)
}

private func candidates<E: BenchmarkEvent>(
  _ shape: Shape, _ type: E.Type, _ scale: Scale, consumers: Int
) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping (Load) -> any Trial) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<E>.size) {
      make(Load(events: scale.events(subject) / (consumers > 1 ? 16 : 1), consumers: consumers))
    }
  }
  let name = shape.rawValue
  return [
    candidate(.lockFree) { Throughput(name, $0) { SequenceChannel<E>(.lockFree, $0) } },
    candidate(.locking) { Throughput(name, $0) { SequenceChannel<E>(.locking, $0) } },
    candidate(.asyncStream) { Throughput(name, $0) { AsyncStreamChannel<E>($0) } },
  ]
}
