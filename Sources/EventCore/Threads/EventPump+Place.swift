// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension ExecuteEventOn {
  /// Inside ``EventPump/run(until:limit:)-(ContinuousClock.Instant?,_)`` of a pump, in one order with its callbacks. The callback has to be
  /// `Sendable`, as with every `executeOn:`; one that is not is registered with ``EventPump`` itself. It ends with
  /// the pump, which is not retained.
  ///
  /// - Parameter pump: The pump.
  /// - Returns: Its place.
  ///
  /// **Threads**: those of the loop; elsewhere name ``EventPump/place``.
  public static func pump(_ pump: EventPump) -> ExecuteEventOn { .pump(pump.place) }
}
