// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of EventDrivenSwift's README (5.2.0), typed in as printed under `import EventDrivenSwift`,
// and compiled in Swift 5 mode. Those of EventsTree and Coordinate beside them are compiled in Swift 6 mode,
// too, as part of PublicAPIProbe, which reaches them through symbolic links. Each is in a namespace of its
// own, since they build on one another under the same names; SeedTests runs them for what they say.
//
// Where the README does not compile with its own library either, it is mended as follows, and only so:
// - `fromTemperature(temperatureInCelsius:)` is declared with a label and called without: no label here.
// - `TemperatureRating` is nested in `TemperatureProcessor` and used unqualified elsewhere: it stands
//   beside it here.
// - `enum TemperatureRatingEvent` has stored properties: it is a struct here.
// - Its initialiser is called with `=` after the labels: `:` here.
// - The view models leave their published properties without a value: they have one here.
// - `listenerHandle.remove()` is called on an optional: `listenerHandle?.remove()` here.
// - `sleep(1)` waits for a handler: the tests wait for what it did instead.
//
// Classes that inherit from `EventThread` get a warning that `@unchecked Sendable` must be
// restated: the language asks for it wherever a superclass is Sendable.

#if canImport(Combine)
  import Combine
#else
  // Stand-ins for what SwiftUI users have from Combine.
  protocol ObservableObject: AnyObject {}

  @propertyWrapper
  struct Published<Value> {
    var wrappedValue: Value
  }
#endif
