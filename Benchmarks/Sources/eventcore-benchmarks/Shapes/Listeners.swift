// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Listeners, which share the listener thread of their central.
//
//     listener          producer ──► listener thread: listener
//
//     eight-listeners   producer ──► listener thread: listener 1, listener 2, ... listener 8

/// The candidates of both shapes for one type of event.
func listenerCandidates<E: BenchmarkEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  candidates(.listener, type, scale, handlers: 1)
    + candidates(.eightListeners, type, scale, handlers: 8)
}

private func candidates<E: BenchmarkEvent>(
  _ shape: Shape, _ type: E.Type, _ scale: Scale, handlers: Int
) -> [Candidate] {
  func candidate(_ subject: Subject, _ make: @escaping (Load) -> any Trial) -> Candidate {
    Candidate(shape: shape, subject: subject, payloadBytes: MemoryLayout<E>.size) {
      make(Load(events: scale.events(subject) / (handlers > 1 ? 2 : 1), handlers: handlers))
    }
  }
  let name = shape.rawValue
  return [
    candidate(.lockFree) { Throughput(name, $0) { ListenerChannel<E>(.lockFree, $0[0]) } },
    candidate(.locking) { Throughput(name, $0) { ListenerChannel<E>(.locking, $0[0]) } },
    candidate(.plain) { Throughput(name, $0) { EventCoreChannel<E>(.lockFree, $0) } },
    candidate(.mutexSwap) { Throughput(name, $0) { MutexSwapChannel<E>($0) } },
  ]
}
