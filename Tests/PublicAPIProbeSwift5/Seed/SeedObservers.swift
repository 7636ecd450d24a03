// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift

/// "Observing an `EventThread`" and "Reciprocal Events".
enum SeedObserver {
  typealias TemperatureRating = SeedValues.TemperatureRating

  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  struct TemperatureRatingEvent: Eventable {
    var temperatureInCelsius: Float
    var temperatureRating: TemperatureRating
  }

  protocol TemperatureProcessorObserver: AnyObject {
    func onTemperatureEvent(temperatureInCelsius: Float)
  }

  class TemperatureProcessor: EventThread {
    override func registerEventListeners() {
        addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
    }

    @ThreadSafeSemaphore public var temperatureInCelsius: Float = Float.zero
    @ThreadSafeSemaphore public var temperatureRating: TemperatureRating = .freezing

    func onTemperatureEvent(_ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        temperatureInCelsius = event.temperatureInCelsius
        temperatureRating = TemperatureRating.fromTemperature(event.temperatureInCelsius)

        /// Notify any Observers...
        withObservers { (observer: TemperatureProcessorObserver) in
            observer.onTemperatureEvent(temperatureInCelsius: event.temperatureInCelsius)
        }

        /// Dispatch our Reciprocal Event...
        TemperatureRatingEvent(
            temperatureInCelsius: temperatureInCelsius,
            temperatureRating: temperatureRating
        ).queue()
    }
  }

  /// "See if you can produce your own `EventThread` to process `TemperatureRatingEvent`s."
  class TemperatureRatingProcessor: EventThread {
    @ThreadSafeSemaphore public var ratings: [TemperatureRating] = []

    override func registerEventListeners() {
        addEventCallback(onTemperatureRatingEvent, forEventType: TemperatureRatingEvent.self)
    }

    func onTemperatureRatingEvent(_ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        _ratings.withLock { $0.append(event.temperatureRating) }
    }
  }
}
