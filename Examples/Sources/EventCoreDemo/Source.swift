// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A source of samples, which is watched for spikes and shown as a rate.
enum Source: Int, CaseIterable, Sendable {
  case processor, memory, interrupts, switches, network, disk

  var title: String {
    switch self {
    case .processor: "processor time"
    case .memory: "memory"
    case .interrupts: "interrupts"
    case .switches: "context switches"
    case .network: "network"
    case .disk: "disk"
    }
  }

  /// A rate in the unit of the source.
  func format(_ rate: Double) -> String {
    switch self {
    case .processor: "\(Int((rate * 100).rounded())) %"
    case .interrupts, .switches: grouped(rate) + "/s"
    case .memory, .network, .disk: bytes(rate) + "/s"
    }
  }
}
