// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The smallest program in Swift, without Foundation: a central, a pump, one event. Prints what
// scripts/measure-footprint.sh asks for.

import EventCore
import Glibc

struct Ping: Eventable { var number: UInt64 }

/// A line of /proc/self/status, in its unit.
func status(_ name: String) -> Int {
  guard let file = fopen("/proc/self/status", "r") else { return -1 }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 256)
  while fgets(&line, 256, file) != nil {
    let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    if text.hasPrefix(name + ":") {
      return Int(text.dropFirst(name.count + 1).drop { !$0.isNumber }.prefix { $0.isNumber }) ?? -1
    }
  }
  return -1
}

_ = status("VmRSS")
let before = status("VmRSS")
let start = ContinuousClock.now
let central = EventCentral()
let pump = EventPump(on: central)
var handled = 0
pump.addEventCallback { (_: Ping) in handled += 1 }
Ping(number: 1).queue(on: central)
pump.run()
let taken = ContinuousClock.now - start
guard handled == 1 else { fatalError("The event did not come.") }
let microseconds = taken.components.attoseconds / 1_000_000_000_000
print(microseconds, status("VmRSS") - before, status("Threads"))
pump.cancel()
pump.run()
