// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An ``EventPump`` as a place in which listeners are called. Unlike the pump it is `Sendable`, so that other threads
/// can register listeners there.
///
/// ```swift
/// let place = pump.place
/// Task { Hit.addListener(nil, executeOn: .pump(place), on: world) { hit in score.add(hit.damage) } }
/// ```
///
/// It does not retain the pump: listeners that are registered after the pump's end are never called.
public struct EventPumpPlace: Sendable {
  let consumer: Consumer
}
