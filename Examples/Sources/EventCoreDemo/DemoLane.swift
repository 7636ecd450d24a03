// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The lanes that the demo uses, in the order in which a consumer empties them (D1).
enum DemoLane: Int, CaseIterable {
  case alarms, high, normal, low, lowest

  var method: EventDispatchMethod { self == .alarms ? .stack : .queue }

  var priority: EventPriority {
    switch self {
    case .alarms: .highest
    case .high: .high
    case .normal: .normal
    case .low: .low
    case .lowest: .lowest
    }
  }

  /// The queue lane of a priority.
  init(queue priority: EventPriority) {
    switch priority {
    case .highest, .high: self = .high
    case .normal: self = .normal
    case .low: self = .low
    case .lowest: self = .lowest
    }
  }

  /// At most 24 characters, the width of the table's column.
  var title: String {
    switch self {
    case .alarms: "stack highest alarms"
    case .high: "queue high    irq, ctxt"
    case .normal: "queue normal  cpu, io"
    case .low: "queue low     mem, burst"
    case .lowest: "queue lowest  load"
    }
  }
}
