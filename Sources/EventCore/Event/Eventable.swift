// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A value that says what happened. Any `Sendable` struct or enum can be an event.
///
/// ```swift
/// struct TemperatureEvent: Eventable {
///   var temperatureInCelsius: Float
/// }
///
/// TemperatureEvent(temperatureInCelsius: 23.25).queue()
/// ```
///
/// An event is delivered by its exact type (D11). Up to 32 bytes travel inside the envelope, a larger value
/// in one reference-counted box that all receivers share.
public protocol Eventable: Sendable {}
