// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import RawCore

/// Where and how the figures were measured.
struct Machine: Codable {
  let cpu: String
  let processors: Int
  let system: String
  let compiler: String
  let commit: String
  let date: String
  let quick: Bool
  /// The time that a cache line takes from one processor to the other, in nanoseconds: the least that
  /// a hand-over costs on this machine.
  let cacheLineOneWay: Double

  /// Looks at the machine. `bench.sh` passes the compiler and the commit in the environment.
  init(isQuick: Bool) {
    let environment = ProcessInfo.processInfo.environment
    cpu = Self.cpuName()
    processors = ProcessInfo.processInfo.activeProcessorCount
    system = ProcessInfo.processInfo.operatingSystemVersionString
    compiler = environment["EVENTCORE_COMPILER"] ?? "unknown"
    commit = environment["EVENTCORE_COMMIT"] ?? "unknown"
    date = ISO8601DateFormatter().string(from: Date())
    quick = isQuick
    let pingPong = RawPingPong(rounds: 200_000, evb_cache_line_ping_pong)
    cacheLineOneWay = (0..<7).map { _ in pingPong.run() }.median
  }

  var lines: [String] {
    [
      "cache line, one way: \(cacheLineOneWay.figure) ns",
      "machine: \(cpu), \(processors) processors, \(system)",
      "built:   \(compiler), release, commit \(commit)",
      "date:    \(date)\(quick ? ", quick" : "")",
    ]
  }

  private static func cpuName() -> String {
    guard let information = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8) else {
      return "unknown"
    }
    // The name alone tells little of virtual processors: their family and model go with it.
    var fields: [String: String] = [:]
    for line in information.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      let name = parts[0].trimmingCharacters(in: .whitespaces)
      fields[name] = fields[name] ?? parts[1].trimmingCharacters(in: .whitespaces)
    }
    let name = fields["model name"] ?? "unknown"
    guard let family = fields["cpu family"], let model = fields["model"] else { return name }
    return "\(name) (family \(family), model \(model))"
  }
}
