// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("Names that tell receivers apart")
struct ReceiverNameTests {
  struct Named: EventReceiver {
    let receiverName: String
    let receiverStatistics = EventThreadStatistics(delivered: 0, skipped: 0, cancelled: 0)
    let mailboxStatistics = EventMailboxStatistics(
      accepted: 0, refused: 0, dropped: 0, waiting: 0, highWaterMark: 0)
  }

  @Test("a name that looks like a numbered one is its receiver's, and no other gets it")
  func distinct() {
    let names = { (names: String...) in names.map { Named(receiverName: $0) as any EventReceiver }.distinctNames }
    #expect(names("W", "W", "W") == ["W", "W-2", "W-3"])
    #expect(names("W", "W-2", "W") == ["W", "W-2", "W-3"])
    #expect(names("W", "W", "W-2") == ["W", "W-3", "W-2"])
    #expect(names("W-2", "W-2", "W", "W", "W-2-2") == ["W-2", "W-2-3", "W", "W-3", "W-2-2"])
  }

  @Test("so it is in the statistics of a central, by age", arguments: cores)
  func statistics(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    let threads = ["X", "X 2", "X", "X 4", "X", "X", "X 6", "Y", "Y", "Y 2"].map { EventThread(on: central, name: $0) }
    let names = ["X", "X 2", "X 3", "X 4", "X 5", "X 6", "X 6 2", "Y", "Y 2", "Y 2 2"]
    #expect(central.statistics.receivers.map(\.name) == names)
    end(threads)
  }

  @Test("a name is free again once its receivers have ended, if nobody looked on", arguments: cores)
  func freed(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    for _ in 0..<3 {
      let threads = ["X", "X"].map { EventThread(on: central, name: $0) }
      #expect(central.statistics.receivers.map(\.name) == ["X", "X 2"])
      end(threads)
    }
  }

  @Test("so it is in the trace of a deterministic central", arguments: cores)
  func trace(core: EventCentral.Core) {
    let central = EventCentral(deterministic: 1, core: core)
    let threads = ["X", "X 2", "X", "X 2"].map { EventThread(on: central, name: $0) }
    for thread in threads { thread.addEventCallback { (_: Step) in } }
    let trace = central.trace {
      Step().queue(on: central)
      central.run()
    }
    #expect(trace.entries.map(\.receiver).sorted() == ["X", "X 2", "X 2 2", "X 3"])
    for thread in threads { thread.cancel() }
  }

  @Test("the place of listeners on another central's thread or pump has the name of that", arguments: cores)
  func guests(core: EventCentral.Core) {
    let (central, other) = (EventCentral(core: core), EventCentral(core: core))
    let (thread, pump) = (EventThread(on: other, name: "physics"), EventPump(on: other))
    let isDone = Gate()
    thread.addEventCallback { (_: Step) in
      Step.addListener(nil, { _ in }, executeOn: .requesterThread, on: central)
      isDone.open()
    }
    Step().queue(on: other)
    isDone.pass()
    Step.addListener(nil, { _ in }, executeOn: .pump(pump.place), on: central)
    #expect(central.statistics.receivers.map(\.name) == ["physics", "EventPump"])
    end([thread])
    pump.cancel()
    pump.run()
  }

  private func end(_ threads: [EventThread]) {
    for thread in threads {
      thread.cancel()
      thread.join()
    }
  }
}
