// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Never changes the `capacity` of a pool, as in a pool without a scaler.
public struct EventPoolStaticScaler: EventPoolScaling {
  /// Makes a scaler without state.
  public init() {}

  /// Nil: the pool never asks the scaler.
  public var interval: Duration? { nil }
  /// Not used, since the pool never asks the scaler.
  public var restingCapacity: Int { 1 }
  /// Returns the present capacity.
  public func capacity(for reading: EventPoolReading) -> Int { reading.capacity }
}

extension EventPoolScaling where Self == EventPoolStaticScaler {
  /// Never changes the pool's `capacity`.
  public static var fixed: EventPoolStaticScaler { EventPoolStaticScaler() }
}
