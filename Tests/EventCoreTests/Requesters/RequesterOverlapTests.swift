// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

@Suite("D9: a requester whose handlers overlap without a gap ends soon after its last reference")
struct RequesterOverlapTests {
  /// How the listener refers to its requester. In both forms a running call refers to it as well.
  enum Form: CaseIterable, CustomTestStringConvertible {
    case method, weakClosure

    var testDescription: String { "\(self)" }

    func register(_ requester: Busy, on place: EventListener) -> any EventListenerHandling {
      switch self {
      case .method:
        Ping.addListener(requester, Busy.onPing, executeOn: .listenerThread, on: place)
      case .weakClosure:
        Ping.addListener(
          requester, { [weak requester] event in requester?.onPing(event) },
          executeOn: .listenerThread, on: place)
      }
    }
  }

  final class Busy: Sendable {
    let token: Lifetime.Token
    let calls = Shared()

    final class Shared: Sendable { let count = Atomic<Int>(0) }

    init(_ token: Lifetime.Token) { self.token = token }

    /// Keeps its processor for 0.3 ms.
    func onPing(_ event: Ping) {
      calls.count.wrappingAdd(1, ordering: .relaxed)
      let end = DispatchTime.now() + .microseconds(300)
      while DispatchTime.now() < end {}
    }
  }

  // test                                   three places
  // dispatches 3,000 events                call the requester's listeners, each for 0.3 ms
  // lets the last reference go             call a few more times
  //                                        turn the others away
  @Test(
    "three places that are busy with a requester's events do not keep it", arguments: cores,
    Form.allCases)
  func threePlaces(core: EventCentral.Core, form: Form) async {
    await offThePool {
      // This takes the least of some rounds, since a busy machine may suspend a thread in a call for
      // longer than the others pause. Without pauses each round has thousands of further calls.
      var least = Int.max
      for _ in 0..<5 where least > 300 {
        least = min(least, self.furtherCalls(core, form))
      }
      #expect(least <= 300)
    }
  }

  @Test("D4: pauses lose no event of a living requester", arguments: cores, Form.allCases)
  func living(core: EventCentral.Core, form: Form) async {
    await offThePool {
      let central = EventCentral(core: core)
      let owner = Lifetime()
      let places = (0..<3).map { EventListener(on: central, name: "place \($0)") }
      let requester = Busy(owner.token())
      let handles = places.map { form.register(requester, on: $0) }
      for number in 0..<300 { Ping(number: number).queue(on: central) }
      #expect(waitUntil { requester.calls.count.load(ordering: .relaxed) == 900 })
      #expect(!handles.contains { !$0.isActive })
    }
  }

  // test                                   three places
  // dispatches 200 events                  call the requester's listeners, each for 0.3 ms, and pause
  // removes a listener and waits           are not inside it any more, and do not begin it again (D6)
  @Test("D6: a listener that is removed beside pauses does not run any more", arguments: cores)
  func removal(core: EventCentral.Core) async {
    await offThePool {
      for round in 0..<40 {
        let central = EventCentral(core: core)
        let places = (0..<3).map { EventListener(on: central, name: "place \($0)") }
        let requester = Busy(Lifetime().token())
        let (begun, broken) = (Busy.Shared(), Busy.Shared())
        let removed = places.map { _ in Busy.Shared() }
        let handles = zip(places, removed).map { place, removed in
          Ping.addListener(
            requester,
            { [weak requester] event in
              let isLate = removed.count.load(ordering: .sequentiallyConsistent)
              begun.count.wrappingAdd(1, ordering: .relaxed)
              requester?.onPing(event)
              let isStill = removed.count.load(ordering: .sequentiallyConsistent)
              if isLate + isStill > 0 { broken.count.wrappingAdd(1, ordering: .relaxed) }
            }, executeOn: .listenerThread, on: place)
        }
        for number in 0..<200 { Ping(number: number).queue(on: central) }
        // Goes on after the first pauses, at another moment in each round.
        #expect(waitUntil { begun.count.load(ordering: .relaxed) >= 150 + round })
        for (handle, removed) in zip(handles, removed) {
          handle.removeAndWait()
          removed.count.store(1, ordering: .sequentiallyConsistent)
        }
        for place in places { place.end() }
        withExtendedLifetime(requester) {}
        #expect(broken.count.load(ordering: .relaxed) == 0, "in round \(round)")
      }
    }
  }

  /// Counts the calls of the listeners after the last reference has gone.
  private func furtherCalls(_ core: EventCentral.Core, _ form: Form) -> Int {
    let central = EventCentral(core: core)
    let (owner, ended) = (Lifetime(), Log<Int>())
    let places = (0..<3).map { EventListener(on: central, name: "place \($0)") }
    let box = Box<Busy>(Busy(owner.token()))
    let calls = box.value!.calls
    for place in places { _ = form.register(box.value!, on: place) }
    for number in 0..<3000 { Ping(number: number).queue(on: central) }
    for place in places {
      Pong.addListener(nil, { _ in ended.append(0) }, executeOn: .listenerThread, on: place)
    }
    Pong().queue(on: central)
    #expect(waitUntil { calls.count.load(ordering: .relaxed) >= 100 })
    box.value = nil
    let before = calls.count.load(ordering: .relaxed)
    #expect(ended.entries(atLeast: 3).count == 3)
    #expect(owner.waitUntilNone())
    return calls.count.load(ordering: .relaxed) - before
  }
}
