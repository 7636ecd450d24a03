// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Foundation
import Synchronization

/// Six stations that measure a hundred times a second each. Urgent: frost overtakes what waits.
func runSensors(_ server: NATSServer, for duration: Duration) async throws {
  let world = EventCentral()
  let bridge = try await NATSBridge(server, on: world)
  bridge.publish(Measured.self)
  let end = ContinuousClock.now + duration
  var next = ContinuousClock.now
  var number = 0
  while ContinuousClock.now < end {
    number += 1
    for station in stations.indices {
      let celsius = 6 + 9 * sin(Double(number) / 200 + Double(station))
      Measured(station: station, number: number, celsius: celsius)
        .queue(priority: celsius < 0 ? .high : .normal, on: world)
    }
    next += .milliseconds(10)
    try await Task.sleep(until: next)
  }
  guard await bridge.drain(within: .seconds(5)) else {
    fatalError(
      """
      A drain sends what waits within 5 seconds, and this one did not: \(bridge.counts). Look whether the server is \
      still there, or lower the number of events.
      """)
  }
}

/// One to four workers, which come and go. Each has a central and a bridge, as on a machine of its own.
func runWorkers(_ server: NATSServer, for duration: Duration) async throws {
  let end = ContinuousClock.now + duration
  var workers: [Worker] = []
  var step = 0
  while ContinuousClock.now < end {
    let wanted = [1, 2, 3, 4, 3, 2][step % 6]
    step += 1
    while workers.count < wanted { workers.append(try await makeWorker(server, "worker \(workers.count + 1)")) }
    // It handles what it has before it goes.
    while workers.count > wanted { await workers.removeLast().end() }
    try await Task.sleep(for: .milliseconds(1500))
  }
  for worker in workers { await worker.end() }
}

private struct Worker {
  let central: EventCentral
  let bridge: NATSBridge
  let measured: RemoteRegistration

  func end() async {
    // No more comes; what came is handled; what that has made goes out.
    await measured.drain()
    await central.drain()
    await bridge.drain()
  }
}

private func makeWorker(_ server: NATSServer, _ name: String) async throws -> Worker {
  let world = EventCentral()
  let bridge = try await NATSBridge(server, on: world)
  bridge.publish(Forecast.self)
  Measured.addListener(
    nil,
    { event in
      Forecast(station: event.station, number: event.number, celsius: event.celsius + 1, worker: name).queue(on: world)
    }, executeOn: .listenerThread, on: world)
  let measured = try bridge.subscribe(Measured.self, group: "forecast")
  return Worker(central: world, bridge: bridge, measured: measured)
}

/// Shows the newest forecast of each station, and who made how many.
func runDashboard(_ server: NATSServer, for duration: Duration) async throws {
  let world = EventCentral()
  let board = Mutex(Board())
  let bridge = try await NATSBridge(server, on: world)
  Forecast.addListener(
    nil, { event in board.withLock { $0.take(event) } }, executeOn: .listenerThread, on: world)
  NATSStatus.addListener(
    nil, { event in board.withLock { $0.status = "\(event.change)" } }, executeOn: .listenerThread, on: world)
  try bridge.subscribe(Forecast.self)
  let isTerminal = isatty(1) == 1
  let begin = ContinuousClock.now
  while ContinuousClock.now < begin + duration {
    try await Task.sleep(for: isTerminal ? .milliseconds(200) : .seconds(1))
    let text = board.withLock { $0.text(after: ContinuousClock.now - begin) }
    print((isTerminal ? "\u{1B}[2J\u{1B}[H" : "") + text)
    fflush(nil)
  }
  await bridge.drain()
  let (forecasts, faults, fewest) = board.withLock { ($0.count, $0.faults, $0.fewest) }
  // Of a hundred a second. Those from before all were connected are lost, which takes long on a slow machine.
  let floor = max(1, Int(10 * duration.components.seconds))
  print("dashboard: \(forecasts) forecasts, \(faults) out of place; of each station \(fewest) or more")
  guard faults == 0, fewest >= floor else {
    print("dashboard: there should be \(floor) or more of each station, and none out of place")
    exit(1)
  }
}

struct Board {
  var status = "connected"
  private(set) var count = 0
  /// Forecasts that came twice, or that nobody here would make.
  private(set) var faults = 0
  /// How many came of the station of which the fewest came.
  var fewest: Int { seen.map(\.count).min() ?? 0 }
  private var newest: [Int: Forecast] = [:]
  private var shares: [String: Int] = [:]
  private var seen: [Set<Int>] = stations.map { _ in [] }

  mutating func take(_ event: Forecast) {
    guard seen.indices.contains(event.station), (-100...100).contains(event.celsius),
      seen[event.station].insert(event.number).inserted
    else {
      faults += 1
      return
    }
    count += 1
    shares[event.worker, default: 0] += 1
    if event.number >= newest[event.station]?.number ?? 0 { newest[event.station] = event }
  }

  mutating func text(after time: Duration) -> String {
    var lines = ["\(time.components.seconds) s, \(status): \(count) forecasts"]
    for (index, name) in stations.enumerated() {
      guard let forecast = newest[index] else { continue }
      let bar = String(repeating: "#", count: max(0, Int(forecast.celsius * 2)))
      lines.append(
        name.padding(toLength: 9, withPad: " ", startingAt: 0)
          + String(format: "%6.1f °C  ", forecast.celsius) + bar)
    }
    // Of the time since the last picture.
    let all = shares.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    shares = [:]
    return (lines + [all.joined(separator: "  ")]).joined(separator: "\n")
  }
}
