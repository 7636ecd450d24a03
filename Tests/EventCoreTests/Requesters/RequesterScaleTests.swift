// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

@Suite("D9: requesters that go by the thousand")
struct RequesterScaleTests {
  // listener thread                          test
  // calls all: holds them all
  // stands in a handler that is nobody's     lets every second go
  // finds them gone
  //
  /// What an event cost the listener thread that found half of so many requesters gone, in
  /// nanoseconds of processor time: whatever else the machine does.
  private func cost(of count: Int, _ core: EventCentral.Core) -> UInt64 {
    let central = EventCentral(core: core)
    let (owners, times) = (Lifetime(), Log<UInt64>())
    let (entered, leave) = (Gate(), Gate())
    @Sendable func note(_: Ping) { times.append(processorTime()) }
    Ping.addListener(nil, note, executeOn: .listenerThread, on: central)
    var requesters: [Requester?] = (0..<count).map { _ in
      let requester = Requester(owners.token(), Log())
      Ping.addListener(requester, Requester.onPing, executeOn: .listenerThread, on: central)
      return requester
    }
    Ping.addListener(nil, note, executeOn: .listenerThread, on: central)
    Pong.addListener(
      nil,
      { _ in
        entered.open()
        leave.pass()
      }, executeOn: .listenerThread, on: central)
    let held = HeldPlace(.listenerThread, on: central)
    Ping().queue(on: central)
    Pong().queue(on: central)
    Ping().queue(on: central)
    held.letGo()
    entered.pass()
    for index in stride(from: 0, to: count, by: 2) { requesters[index] = nil }
    // The thread holds them still.
    #expect(owners.alive == count)
    leave.open()
    let noted = times.entries(atLeast: 4)
    #expect(owners.alive == count / 2)
    #expect(central.listener.listenerCount == count / 2 + 3)
    withExtendedLifetime(requesters) {}
    return noted[3] - noted[2]
  }

  @Test("an event that finds half of them gone costs in proportion to their number", arguments: cores)
  func linear(core: EventCentral.Core) async {
    let (few, many) = (Log<UInt64>(), Log<UInt64>())
    await offThePool {
      for _ in 0..<3 {
        few.append(cost(of: 1_000, core))
        many.append(cost(of: 8_000, core))
      }
    }
    // Eight times as many; each looked for among the others, it would be 64.
    let ratio = Double(many.entries.min()!) / Double(few.entries.min()!)
    #expect(ratio < 24, "\(few.entries) ns, and \(many.entries) ns")
  }
}

/// What the calling thread has used of a processor, in nanoseconds.
private func processorTime() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
