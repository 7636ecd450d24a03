// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Figures of the bridge beside those of the client in C alone, over the same server, in one run:
//
//     eventcore-nats-figures URL [EVENTS]
//     eventcore-nats-figures URL requests     the round trips alone
//
// `figures.sh` starts a server for it. Each shape is run three times, and the best run counts: the machine has other
// work. Round trips are run in turns, and the middle counts.

import Foundation

let arguments = CommandLine.arguments
guard arguments.count >= 2 else {
  fatalError("The URL of a server is needed, and none was given: run figures.sh.")
}
let url = arguments[1]
guard arguments.count <= 2 || arguments[2] == "requests" || Int(arguments[2]).map({ $0 >= 100 }) == true else {
  fatalError("A run has 100 events or more, and this was \(arguments[2]): pass such a number, or \"requests\".")
}
let events = arguments.count > 2 ? Int(arguments[2]) ?? 0 : 200_000

func row(_ name: String, _ value: Double, _ unit: String, beside base: Double? = nil, ratios: [Double]? = nil) {
  let sorted = (ratios ?? base.map { [value / $0] } ?? []).sorted()
  var ratio = sorted.isEmpty ? "" : String(format: "%8.2fx", sorted[sorted.count / 2])
  if sorted.count > 1 { ratio += String(format: " (%.2f to %.2f)", sorted[0], sorted[sorted.count - 1]) }
  print(
    name.padding(toLength: 58, withPad: " ", startingAt: 0) + String(format: "%12.1f ", value)
      + unit.padding(toLength: 12, withPad: " ", startingAt: 0) + ratio)
  fflush(nil)
}

func best(_ runs: Int = 3, of body: () async throws -> Double) async throws -> Double {
  var best = 0.0
  for _ in 0..<runs { best = max(best, try await body()) }
  return best
}

/// In turns, since what else the machine does changes from second to second: the middle of the runs, and of what each
/// takes beside the client's of the same turn.
func requests(turns: Int = 9) async throws {
  typealias Trip = (p50: Double, p99: Double)
  func middle(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
  func rows(_ name: String, _ trips: [Trip], beside bare: [Trip]? = nil) {
    for (name, part) in [("\(name): p50", \Trip.p50), ("\(name): p99", \Trip.p99)] {
      let ratios = bare.map { zip(trips, $0).map { $0[keyPath: part] / $1[keyPath: part] } }
      row(name, middle(trips.map { $0[keyPath: part] }), "us", ratios: ratios)
    }
  }
  for atOnce in [false, true] {
    print("a request and its answer\(atOnce ? ", sent at once" : "")")
    var (bare, json, packed): ([Trip], [Trip], [Trip]) = ([], [], [])
    for _ in 0..<(atOnce ? turns : 1) {
      bare.append(try bareRoundTrips(url, 2000, atOnce: atOnce))
      json.append(try await bridgeRoundTrips(url, 2000, Question.self, atOnce: atOnce))
      packed.append(try await bridgeRoundTrips(url, 2000, PackedQuestion.self, atOnce: atOnce))
    }
    rows("client in C", bare)
    rows("world.request, JSON", json, beside: bare)
    rows("world.request, a coding of 8 bytes", packed, beside: bare)
  }
  rows("world.request in one central, without a bridge", [try await localRoundTrips(5000)])
}

if arguments.last == "requests" {
  try await requests()
  exit(0)
}

// First, while there is no memory that was used before.
row("memory of a bridge with a type that it sends and receives", try await bridgeMemory(url), "KiB")

print("\(events) events of 16 bytes, one way")
let bare = try await best { try bareThroughput(url, events, withHeader: false) }
row("client in C, one subject", bare / 1000, "thousand/s")
let bareHeader = try await best { try bareThroughput(url, events, withHeader: true) }
row("client in C, with a header", bareHeader / 1000, "thousand/s", beside: bare / 1000)
let packed = try await best { try await bridgeThroughput(url, events, Packed.self) }
row("bridge, a coding of 16 bytes", packed / 1000, "thousand/s", beside: bare / 1000)
let batched = try await best { try await bridgeThroughput(url, events, Packed.self, batch: 64) }
row("bridge, a coding of 16 bytes, batches of 64", batched / 1000, "thousand/s", beside: bare / 1000)
let json = try await best { try await bridgeThroughput(url, events, Plain.self) }
row("bridge, JSON", json / 1000, "thousand/s", beside: bare / 1000)

let jsonBatched = try await best { try await bridgeThroughput(url, events, Plain.self, batch: 64) }
row("bridge, JSON, batches of 64", jsonBatched / 1000, "thousand/s", beside: bare / 1000)

let cbor = try await best { try await bridgeThroughput(url, events, Compact.self) }
row("bridge, CBOR", cbor / 1000, "thousand/s", beside: bare / 1000)

let cborBatched = try await best { try await bridgeThroughput(url, events, Compact.self, batch: 64) }
row("bridge, CBOR, batches of 64", cborBatched / 1000, "thousand/s", beside: bare / 1000)

let atOnce = try await best { try await bridgeThroughput(url, events, Packed.self, atOnce: true) }
row("bridge, a coding of 16 bytes, sent at once", atOnce / 1000, "thousand/s", beside: bare / 1000)

try await requests()

print("bridges of one process that send to one; JSON")
for count in [1, 4, 16, 64] {
  let rate = try await best(1) { try await manyBridges(url, count, events / 4) }
  row("\(count) bridges", rate / 1000, "thousand/s")
}

print("subjects under one subscription; the client in C sends; JSON")
for count in [1, 1000, 100_000] {
  let rate = try await best(1) { try await manySubjects(url, count, events / 4) }
  row("\(count) subjects", rate / 1000, "thousand/s")
}

print("events that a stream keeps, one after the other; JSON")
let stored = try await storedThroughput(url, events / 50)
row("stored", stored.stored / 1000, "thousand/s")
row("stored, delivered and handled", stored.handled / 1000, "thousand/s")
