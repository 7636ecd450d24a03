// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A program that traces, on a system that has signposts: each dispatch and each handling is posted, and nothing else.

import EventCore
import os

struct Hit: Eventable {}

@main
struct Program {
  static func main() {
    let clock = ManualClock()
    let world = EventCentral(clock: clock)
    let pumps = [EventPump(on: world), EventPump(on: world)]
    for pump in pumps { pump.addEventCallback { (_: Hit) in posted.append("handled") } }
    func play() {
      Hit().queue(on: world)
      clock.advance(by: .microseconds(5))
      for pump in pumps { pump.run() }
    }
    play()
    precondition(posted == ["handled", "handled"])
    posted = []
    let tracing = world.startTracing()
    play()
    let expected = [
      "dispatch: Program.Hit", "handler begins: Program.Hit at EventPump, waited 5000 ns", "handled", "handler ends",
      "handler begins: Program.Hit at EventPump 2, waited 5000 ns", "handled", "handler ends",
    ].map { $0.replacing("Program.", with: "\(String(reflecting: Hit.self).prefix { $0 != "." }).") }
    precondition(posted == expected, "\(posted)")
    tracing.finish { _ in }
    posted = []
    play()
    precondition(posted == ["handled", "handled"])
  }
}
