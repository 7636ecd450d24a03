// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Leaves a pool as it was made, or as `capacity` was set, as a pool without a scaler does.
public struct EventPoolStaticScaler: EventPoolScaling {
  /// Makes one; it keeps no state.
  public init() {}

  /// The pool never asks.
  public var interval: Duration? { nil }
  /// Unused, since the pool never asks.
  public var restingCapacity: Int { 1 }
  /// As many as there are asked for.
  public func capacity(for reading: EventPoolReading) -> Int { reading.capacity }
}

extension EventPoolScaling where Self == EventPoolStaticScaler {
  /// Leaves the pool as it was made.
  public static var fixed: EventPoolStaticScaler { EventPoolStaticScaler() }
}
