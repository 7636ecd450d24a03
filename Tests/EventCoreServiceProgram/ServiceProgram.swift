// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A server in small: a thread with a backlog, whose first handler runs until the program shuts down.
//
//   EventCoreServiceProgram open       the handler returns when the shutdown begins: everything is handled
//   EventCoreServiceProgram stuck      it does not return: the drain gives up after a moment
//
// It says "ready" when the group runs, and what the shutdown reported when that is over. SIGTERM shuts down gracefully,
// SIGINT cancels.

#if ServiceLifecycle
  import Dispatch
  import EventCoreServiceLifecycle
  import Foundation
  import Logging
  import ServiceLifecycle

  struct Work: Eventable { let number: Int }
  struct Done: Eventable { let number: Int }

  final class Worker: EventThread, @unchecked Sendable {
    let gate = DispatchSemaphore(value: 0), began = DispatchSemaphore(value: 0)
    override func registerEventListeners() { addEventCallback(Worker.onWork) }
    func onWork(_ work: Work) {
      if work.number == 0 {
        began.signal()
        gate.wait()
      }
      Done(number: work.number).queue(on: central)
    }
  }

  /// Lets the handler go on when the drains begin: the first part of the service.
  struct Opener: EventServicePart {
    let gate: DispatchSemaphore?
    var receiverStatistics: EventThreadStatistics { EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0) }
    var mailboxStatistics: EventMailboxStatistics {
      EventMailboxStatistics(accepted: 0, refused: 0, dropped: 0, waiting: 0, highWaterMark: 0)
    }
    func deadline(after limit: Duration) -> DispatchTime { .now() }
    func drain(until deadline: DispatchTime) async -> Bool {
      gate?.signal()
      return true
    }
    func cancel() {}
  }

  /// Runs when the group listens to signals.
  struct Greeter: Service {
    func run() async throws {
      say("ready")
      try await gracefulShutdown()
    }
  }

  func blockUntil(_ semaphore: DispatchSemaphore) { semaphore.wait() }

  /// At once, also into a pipe.
  func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

  @main
  struct ServiceProgram {
    static func main() async {
      let isStuck = CommandLine.arguments.contains("stuck")
      let world = EventCentral()
      let worker = Worker(on: world)
      Done.addListener(nil, { _ in }, executeOn: .listenerThread, on: world)
      (0..<1_000).map(Work.init).queue(on: world)
      // The top of the program blocks its thread once, before there is anything to await.
      blockUntil(worker.began)
      let events = EventService(
        Opener(gate: isStuck ? nil : worker.gate), worker, world,
        drainingFor: isStuck ? .milliseconds(50) : .seconds(60)
      ) { report in
        say("\(report)")
      }
      let group = ServiceGroup(
        services: [events, Greeter()], gracefulShutdownSignals: [.sigterm],
        cancellationSignals: [.sigint], logger: Logger(label: "program", factory: { _ in SwiftLogNoOpLogHandler() }))
      do {
        try await group.run()
        say("ended")
      } catch {
        say("threw \(type(of: error))")
      }
    }
  }
#else
  @main
  struct ServiceProgram {
    static func main() {}
  }
#endif
