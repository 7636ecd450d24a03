// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D8: the clock is read only if a handler asks for the time")
struct ClockTests {
  struct Empty: Eventable {}

  /// The time that an envelope of a dispatch would carry: 0 if the clock was not read.
  private func stamp(_ central: EventCentral) -> UInt64? {
    var state = DispatchState()
    central.router.begin(
      key: eventKey(Empty.self), lane: Lane(.queue, .normal).index, size: 0, alignment: 1,
      events: 1,
      &state)
    let time = state.first?.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self)
    if state.first != nil { central.router.commit(&state) }
    return time
  }

  @Test("the clock is read from the first callback that asks until the last one is removed", arguments: cores)
  func clockIsReadWhileAsked(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    #expect(stamp(central) == nil)
    let thread = EventThread(on: central)
    let short = thread.addEventCallback { (_: Empty) in }
    #expect(stamp(central) == 0)
    let long = thread.addEventCallback { (_: Empty, _: EventPriority, _: DispatchTime) in }
    #expect((stamp(central) ?? 0) > 0)
    long.remove()
    #expect(stamp(central) == 0)
    short.remove()
    #expect(stamp(central) == nil)
    thread.cancel()
  }

  @Test(
    "the clock is read while a listener takes the time, not for one that takes the event alone",
    arguments: cores)
  func listenersReadItWhenTheyAsk(core: EventCentral.Core) {
    final class Requester: Sendable {
      func onEmpty(_ event: Empty) {}
    }
    let (central, requester) = (EventCentral(core: core), Requester())
    let plain = [
      Empty.addListener(nil, { event in }, executeOn: .listenerThread, on: central),
      Empty.addListener(requester, { event in }, executeOn: .listenerThread, on: central),
      Empty.addListener(requester, Requester.onEmpty, executeOn: .taskThread, on: central),
    ]
    #expect(stamp(central) == 0)
    for (place, executeOn) in [
      ("listener thread", ExecuteEventOn.listenerThread), ("task", .taskThread),
      ("queue", .dispatchQueue(.main)),
    ] {
      let timed = Empty.addListener(
        nil, { event, priority, dispatchTime in }, executeOn: executeOn, on: central)
      let before = DispatchTime.now().uptimeNanoseconds
      let time = stamp(central)
      #expect((before...DispatchTime.now().uptimeNanoseconds).contains(time ?? 0), "\(place)")
      timed.remove()
      #expect(stamp(central) == 0, "\(place)")
    }
    // A filter is given the time, and an age limit needs it.
    let filtering = Empty.addListener(
      nil, { event in }, executeOn: .listenerThread, interestedIn: .custom,
      customFilter: { _, _, _ in true }, on: central)
    #expect((stamp(central) ?? 0) > 0)
    filtering.remove()
    #expect(stamp(central) == 0)
    let young = Empty.addListener(
      nil, { event in }, executeOn: .listenerThread, interestedIn: .youngerThan, maximumAge: 1_000,
      on: central)
    #expect((stamp(central) ?? 0) > 0)
    young.remove()
    #expect(stamp(central) == 0)
    for handle in plain { handle.remove() }
    #expect(stamp(central) == nil)
    withExtendedLifetime(requester) {}
  }
}
