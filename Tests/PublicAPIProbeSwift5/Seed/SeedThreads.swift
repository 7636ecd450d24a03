// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift

/// "Usage", up to "(Receiving & Processing Events - Method 1)": an event, and a thread for it.
enum SeedThread {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  class TemperatureProcessor: EventThread {
    /// Register our Event Listeners for this EventThread
    override func registerEventListeners() {
        addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
    }

    /// Define our Callback Function to process received TemperatureEvent Events
    func onTemperatureEvent(_ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {

    }
  }

  static func dispatch() {
    let temperatureEvent = TemperatureEvent(temperatureInCelsius: 23.25)
    temperatureEvent.queue()
    temperatureEvent.queue(priority: .highest)
    temperatureEvent.stack()
    temperatureEvent.stack(priority: .highest)
  }
}

/// The thread keeps values of its events that any thread may read.
enum SeedValues {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  /// An Enum to map a Temperature value onto a Rating
  enum TemperatureRating: String {
    case belowFreezing = "Below Freezing"
    case freezing = "Freezing"
    case reallyCold = "Really Cold"
    case cold = "Cold"
    case chilly = "Chilly"
    case warm = "Warm"
    case hot = "Hot"
    case reallyHot = "Really Hot"
    case boiling = "Boiling"
    case aboveBoiling = "Steam"

    static func fromTemperature(_ temperatureInCelsius: Float) -> TemperatureRating {
        if temperatureInCelsius < 0 { return .belowFreezing }
        else if temperatureInCelsius == 0 { return .freezing }
        else if temperatureInCelsius < 5 { return .reallyCold }
        else if temperatureInCelsius < 10 { return .cold }
        else if temperatureInCelsius < 16 { return .chilly }
        else if temperatureInCelsius < 22 { return .warm }
        else if temperatureInCelsius < 25 { return .hot }
        else if temperatureInCelsius < 100 { return .reallyHot }
        else if temperatureInCelsius == 100 { return .boiling }
        else { return .aboveBoiling }
    }
  }

  class TemperatureProcessor: EventThread {
    /// Register our Event Listeners for this EventThread
    override func registerEventListeners() {
        addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
    }

    @ThreadSafeSemaphore public var temperatureInCelsius: Float = Float.zero
    @ThreadSafeSemaphore public var temperatureRating: TemperatureRating = .freezing

    func onTemperatureEvent(_ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        temperatureInCelsius = event.temperatureInCelsius
        temperatureRating = TemperatureRating.fromTemperature(event.temperatureInCelsius)
    }
  }
}
