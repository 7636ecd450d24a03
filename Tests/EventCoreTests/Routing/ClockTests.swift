// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCoreTestSupport
import Testing

@testable import EventCore

@Suite("D8: nobody pays for the clock who does not ask for it")
struct ClockTests {
  struct Empty: Eventable {}

  /// The time that an envelope of a dispatch would carry: 0 if the clock was not read.
  private func stamp(_ central: EventCentral) -> UInt64? {
    var state = DispatchState()
    central.router.begin(
      key: eventKey(Empty.self), lane: Lane(.queue, .normal).index, size: 0, alignment: 1, events: 1,
      &state)
    let time = state.first?.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self)
    if state.first != nil { central.router.commit(&state) }
    return time
  }

  @Test("it is read from the first callback that asks to the removal of the last", arguments: cores)
  func clockIsReadWhileAsked(core: EventCentral.Core) {
    let central = EventCentral(core: core)
    #expect(stamp(central) == nil)
    let thread = EventThread(on: central)
    let short = thread.addEventCallback { (_: Empty) in }
    #expect(stamp(central) == 0)
    let long = thread.addEventCallback { (_: Empty, _: EventPriority, _: DispatchTime) in }
    #expect(stamp(central) != 0)
    long.remove()
    #expect(stamp(central) == 0)
    short.remove()
    #expect(stamp(central) == nil)
    thread.cancel()
  }
}
