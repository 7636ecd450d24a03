// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Which events of its type a handler wants to be called for.
///
/// What an interest turns away is skipped: the handler is not called, the event counts as skipped
/// for this handler, and every other handler gets it as usual (D4).
///
/// ```swift
/// thread.addEventCallback(
///   { (event: TemperatureEvent) in print(event.temperatureInCelsius) },
///   interestedIn: .youngerThan, maximumAge: 1_000_000_000)
/// ```
public enum EventListenerInterest: CaseIterable, Sendable {
  /// Every event.
  case all
  /// Of the events that wait for the handler only the one that was dispatched last, on whatever
  /// lane. The others are never stored: however many come, one waits. What "waits for the handler"
  /// means in a pool, <doc:ThreadsAndPools> tells.
  case latestOnly
  /// Events that are younger than a maximum age when the handler would run. Needs `maximumAge`.
  case youngerThan
  /// Events that pass a filter, which is asked when the handler would run. Needs `customFilter`.
  case custom
}
