// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Metrics
import Synchronization

/// A backend of swift-metrics that keeps all values in memory, and shows them as text in the format of Prometheus.
final class TextMetrics: MetricsFactory {
  /// One value: a sum for counters, the last record of all else, in seconds for timers.
  final class Value: CounterHandler, RecorderHandler, TimerHandler {
    private let value = Mutex(0.0)

    var current: Double { value.withLock { $0 } }
    func increment(by amount: Int64) { value.withLock { $0 += Double(amount) } }
    func reset() { value.withLock { $0 = 0 } }
    func record(_ amount: Int64) { record(Double(amount)) }
    func record(_ amount: Double) { value.withLock { $0 = amount } }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }
  }

  private let values = Mutex<[String: Value]>([:])

  /// A line for each value: `eventcore_waiting{receiver="Hall"} 0.0`.
  var text: String {
    values.withLock { $0 }.map { "\($0.key) \($0.value.current)\n" }.sorted().joined()
  }

  private func value(_ label: String, _ dimensions: [(String, String)]) -> Value {
    let name = String(label.map { $0 == "." || $0 == "-" ? "_" : $0 })
    let labels = dimensions.map { "\($0)=\"\($1)\"" }.joined(separator: ",")
    let key = labels.isEmpty ? name : "\(name){\(labels)}"
    return values.withLock { values in
      let value = values[key] ?? Value()
      values[key] = value
      return value
    }
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { value(label, dimensions) }
  func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    value(label, dimensions)
  }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { value(label, dimensions) }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}

/// What the chat itself counts.
struct ChatCounts: Sendable {
  let accepted: Counter
  let missed: Counter
  let seats: Meter

  init(_ factory: any MetricsFactory) {
    accepted = Counter(label: "chat.accepted", dimensions: [], factory: factory)
    missed = Counter(label: "chat.missed", dimensions: [], factory: factory)
    seats = Meter(label: "chat.seats", dimensions: [], factory: factory)
  }
}
