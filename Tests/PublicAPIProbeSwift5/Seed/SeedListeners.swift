// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift

#if canImport(Combine)
  import Combine
#endif

/// "`EventListener`", on the requester's, the listener's and a task's thread.
enum SeedListener {
  typealias TemperatureRating = SeedValues.TemperatureRating

  struct TemperatureRatingEvent: Eventable {
    var temperatureInCelsius: Float
    var temperatureRating: TemperatureRating
  }

  class TemperatureRatingViewModel: ObservableObject {
    @Published var temperatureInCelsius: Float = Float.zero
    @Published var temperatureRating: TemperatureRating = .freezing

    var listenerHandle: EventListenerHandling?

    internal func onTemperatureRatingEvent(_ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        temperatureInCelsius = event.temperatureInCelsius
        temperatureRating = event.temperatureRating
    }

    init() {
        // Let's register our Event Listener Callback!
        listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent)
    }

    func executeOnListenerThread() {
        listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, executeOn: .listenerThread)
    }

    func executeOnTaskThread() {
        listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, executeOn: .taskThread)
    }

    func remove() {
        listenerHandle?.remove()
    }
  }
}

/// "`EventListener` with *Latest-Only* Interest".
enum SeedLatestOnly {
  typealias TemperatureRating = SeedValues.TemperatureRating

  struct TemperatureRatingEvent: Eventable {
    var temperatureInCelsius: Float
    var temperatureRating: TemperatureRating
  }

  class TemperatureRatingViewModel: ObservableObject {
    @Published var temperatureInCelsius: Float = Float.zero
    @Published var temperatureRating: TemperatureRating = .freezing

    var listenerHandle: EventListenerHandling?

    internal func onTemperatureRatingEvent(_ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        temperatureInCelsius = event.temperatureInCelsius
        temperatureRating = event.temperatureRating
    }

    init() {
        // Let's register our Event Listener Callback!
        listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, interestedIn: .latestOnly)
    }
  }
}

/// "`EventListener` with *Maximum Age* Interest".
enum SeedMaximumAge {
  typealias TemperatureRating = SeedValues.TemperatureRating

  struct TemperatureRatingEvent: Eventable {
    var temperatureInCelsius: Float
    var temperatureRating: TemperatureRating
  }

  class TemperatureRatingViewModel: ObservableObject {
    @Published var temperatureInCelsius: Float = Float.zero
    @Published var temperatureRating: TemperatureRating = .freezing

    var listenerHandle: EventListenerHandling?

    internal func onTemperatureRatingEvent(_ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        temperatureInCelsius = event.temperatureInCelsius
        temperatureRating = event.temperatureRating
    }

    init() {
        // Let's register our Event Listener Callback!
        listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, interestedIn: .youngerThan, maximumAge: 1 * 1_000_000_000)
    }
  }
}

/// "`EventListener` with *Custom Event Filtering* Interest".
enum SeedCustomFilter {
  typealias TemperatureRating = SeedValues.TemperatureRating

  struct TemperatureRatingEvent: Eventable {
    var temperatureInCelsius: Float
    var temperatureRating: TemperatureRating
  }

  class TemperatureRatingViewModel: ObservableObject {
    @Published var temperatureInCelsius: Float = Float.zero
    @Published var temperatureRating: TemperatureRating = .freezing

    var listenerHandle: EventListenerHandling?

    internal func onTemperatureRatingEvent(_ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        temperatureInCelsius = event.temperatureInCelsius
        temperatureRating = event.temperatureRating
    }

    internal func onTemperatureRatingEventFilter(_ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool {
        if event.temperatureInCelsius > 50 { return false } // If the Temperature is above 50 Degrees, this Listener is not interested in it!
        return true // If the Temperature is NOT above 50 Degrees, the Listener IS interested in it!
    }

    init() {
        // Let's register our Event Listener Callback!
        listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, interestedIn: .custom, customFilter: onTemperatureRatingEventFilter)
    }
  }
}

/// "`UIEventThread`": "You can simply inherit from `UIEventThread` instead of `EventThread`."
enum SeedUIThread {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  class TemperatureProcessor: UIEventThread {
    override func registerEventListeners() {
        addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
    }

    @ThreadSafeSemaphore public var temperatureInCelsius: Float = Float.zero

    func onTemperatureEvent(_ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        MainActor.assumeIsolated { temperatureInCelsius = event.temperatureInCelsius }
    }
  }
}
