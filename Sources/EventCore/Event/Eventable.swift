// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A value that tells what happened: any `Sendable` struct or enum can be an event.
///
/// ```swift
/// struct TemperatureEvent: Eventable {
///   var temperatureInCelsius: Float
/// }
///
/// TemperatureEvent(temperatureInCelsius: 23.25).queue()
/// ```
///
/// An event is delivered by its exact type (D11): a handler for one type never sees another. Values
/// of any shape travel: up to 32 bytes inside the envelope, anything larger in one counted box that
/// all receivers share.
public protocol Eventable: Sendable {}
