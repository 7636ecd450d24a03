// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A library in C and a program in Swift exchange events through one central. Their structures are C's.
//
//     Swift: measure.queue() ──► central ──► the library's mailbox: its thread measures
//     Swift: pump ◄── central ◄── evc_dispatch_bytes(reading) ◄──┘

import CSensors
import EventCore

extension reading: @retroactive Eventable {}
extension measure: @retroactive Eventable {}

let central = EventCentral()
guard let router = central.cRouter else {
  fatalError("C and Swift meet on the lock-free core, and this central has another one.")
}
let pump = EventPump(on: central)
var last: [UInt32: UInt32] = [:]
var sum = 0.0
pump.addEventCallback { (event: reading) in
  // Each sensor's readings come in the order in which C dispatched them (D2).
  precondition(event.number == last[event.sensor, default: 0] + 1, "a reading came out of order")
  last[event.sensor] = event.number
  sum += event.value
}

let sensors = sensors_start(
  router, EventCentral.cKey(of: reading.self), EventCentral.cKey(of: measure.self))
guard let sensors else { fatalError("The sensors did not start: memory is out.") }

for sensor: UInt32 in 1...3 {
  precondition(measure(sensor: sensor, count: 10_000).queue(on: central) == 1, "C did not hear it")
}
while last.values.reduce(0, +) < 30_000 {
  pump.wait()
  pump.run()
}
let dispatched = sensors_stop(sensors)
pump.cancel()
pump.run()
print("\(dispatched) readings from C, each sensor's in order: ok")
