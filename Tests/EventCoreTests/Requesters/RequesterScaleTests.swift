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

@Suite("D9: thousands of requesters that go at once")
struct RequesterScaleTests {
  // listener thread                          test
  // calls all requesters, and holds them
  // stands in a handler without a requester  lets every second requester go
  // finds them gone
  //
  /// The cost of the event at which the listener thread finds half of `count` requesters gone, in
  /// nanoseconds of processor time, which other work of the machine does not change.
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
    // The listener thread still holds them.
    #expect(owners.alive == count)
    leave.open()
    let noted = times.entries(atLeast: 4)
    #expect(owners.alive == count / 2)
    #expect(central.listener.listenerCount == count / 2 + 3)
    withExtendedLifetime(requesters) {}
    return noted[3] - noted[2]
  }

  @Test("finding half of the requesters gone costs in proportion to their number", arguments: cores)
  func linear(core: EventCentral.Core) async {
    let (few, many) = (Log<UInt64>(), Log<UInt64>())
    await offThePool {
      for _ in 0..<3 {
        few.append(cost(of: 1_000, core))
        many.append(cost(of: 8_000, core))
      }
    }
    // There are eight times as many. If each were looked for among all, the ratio would be 64.
    let ratio = Double(many.entries.min()!) / Double(few.entries.min()!)
    #expect(ratio < 24, "\(few.entries) ns, and \(many.entries) ns")
  }
}

/// The processor time that the calling thread has used, in nanoseconds.
private func processorTime() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
