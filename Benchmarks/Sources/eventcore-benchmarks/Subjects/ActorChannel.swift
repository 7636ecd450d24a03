// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An actor for each consumer. The producer is one task that awaits one call after another: a task
/// for each event would come in any order, and costs more.
final class ActorChannel<Event: BenchmarkEvent>: Channel {
  static var staysOnSender: Bool { true }

  private actor Consumer {
    private let handlers: [Handler]

    init(_ handlers: [Handler]) {
      self.handlers = handlers
    }

    func receive(_ event: Event) {
      for handler in handlers {
        handler(event)
      }
    }
  }

  private let consumers: [Consumer]

  init(_ consumers: [[Handler]]) {
    self.consumers = consumers.map { Consumer($0) }
  }

  func send(_ event: consuming Event) {
    let event = event
    Task.detached { [consumers] in
      for consumer in consumers {
        await consumer.receive(event)
      }
    }
  }

  func produce(_ count: Int, _ supply: Event.Supply) {
    Task.detached { [consumers] in
      var supply = supply
      for _ in 0..<count {
        let event = supply.next()
        for consumer in consumers {
          await consumer.receive(event)
        }
      }
    }
  }

  func end() {}
}
