// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The smallest program in Swift, without Foundation: a central, a pump, one event. Prints what
// scripts/measure-footprint.sh asks for.

import EventCore
import Glibc

struct Ping: Eventable { var number: UInt64 }

/// What a line of a file in /proc/self says, in its unit.
func line(of path: String, _ name: String) -> Int {
  guard let file = fopen(path, "r") else { return -1 }
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

/// Resident memory, and the part of it that no file is behind, from the page tables: the figures of /proc/self/status may
/// lag behind by many pages.
func memory() -> (resident: Int, anonymous: Int) {
  let path = "/proc/self/smaps_rollup"
  return (line(of: path, "Rss"), line(of: path, "Anonymous"))
}

_ = memory()
let before = memory()
var start = ContinuousClock.now
let central = EventCentral()
let pump = EventPump(on: central)
var handled = 0
pump.addEventCallback { (_: Ping) in handled += 1 }
var taken = ContinuousClock.now - start
let idle = memory()
start = ContinuousClock.now
Ping(number: 1).queue(on: central)
pump.run()
taken += ContinuousClock.now - start
let used = memory()
guard handled == 1 else { fatalError("The event did not come.") }
let microseconds = taken.components.attoseconds / 1_000_000_000_000
print(
  microseconds, idle.resident - before.resident, idle.anonymous - before.anonymous,
  used.resident - before.resident, used.anonymous - before.anonymous,
  line(of: "/proc/self/status", "Threads"))
pump.cancel()
pump.run()
