// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the listeners' symbols, compiled as a user would.

import Dispatch
import EventCore
import Testing

/// A namespace, since the examples of other symbols have types of the same names.
enum SymbolsOfListeners {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  struct TemperatureRatingEvent: Eventable {
    var isWarm = true
  }

  // EventListenerScope.
  final class Dashboard {
    let listeners = EventListenerScope()

    init() {
      TemperatureEvent.addListener(nil, executeOn: .listenerThread) { event in print(event) }
        .stored(in: listeners)
    }
  }

  // EventMethod.
  @MainActor
  final class Display: EventListening {
    var celsius: Float = 0

    @EventMethod<Display, TemperatureEvent>(interestedIn: .latestOnly)
    private var onTemperature = { (self, event, priority, dispatchTime) in
      self.celsius = event.temperatureInCelsius
    }

    init() { registerListeners() }
  }

  // The forms with a closure or a method.
  final class Model: Sendable {
    let listener = EventListener()

    func onTemperatureRatingEvent(
      _ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime
    ) {}

    func onRating(_ event: TemperatureRatingEvent) {}

    func addBoundMethod() {
      TemperatureRatingEvent.addListener(
        self, onTemperatureRatingEvent, executeOn: .listenerThread, on: listener)
    }

    func addBoundMethodOfType() -> any EventListenerHandling {
      TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent, executeOn: .listenerThread)
    }

    @MainActor func addMethod() {
      TemperatureRatingEvent.addListener(self, Model.onRating)
    }

    func addMethods() {
      TemperatureRatingEvent.addListener(self, Model.onRating, executeOn: .listenerThread)
    }

    func addTrailingClosures() {
      TemperatureEvent.addListener(self, executeOn: .listenerThread) { event in
        print(event)
      }
    }
  }

  // The forms that are called where they are registered.
  @MainActor
  final class ViewModel {
    var celsius: Float = 0

    init() {
      TemperatureEvent.addListener(self, interestedIn: .latestOnly) { [weak self] event in
        self?.celsius = event.temperatureInCelsius
      }
      TemperatureEvent.addListener(self, ViewModel.onTemperature)
    }

    func onTemperature(_ event: TemperatureEvent) {}

    static func addMethod(_ model: Model) {
      model.addMethod()
    }
  }

  // EventListener.
  struct BufferEvent: Eventable {}

  final class Mixer: Sendable {
    func onBuffer(_ event: BufferEvent) {}

    static func ownListener(_ mixer: Mixer) -> EventListener {
      let audio = EventListener(name: "audio")
      BufferEvent.addListener(mixer, Mixer.onBuffer, executeOn: .listenerThread, on: audio)
      return audio
    }
  }

  // The form that is given an actor.
  actor Store {
    var latest: Float = 0

    static func listen(_ store: Store) {
      TemperatureEvent.addListener(store) { (store: isolated Store, event) in
        store.latest = event.temperatureInCelsius
      }
    }
  }

  // The forms on an actor.
  enum OnActors {
    actor Model {
      nonisolated let listener = EventListener()
      private(set) var latest: Float = 0

      func addIsolated() {
        TemperatureEvent.addListener(nil, on: listener) { event in
          self.latest = event.temperatureInCelsius
        }
      }

      func addIsolatedOfType() -> any EventListenerHandling {
        TemperatureEvent.addListener(nil) { event in
          self.latest = event.temperatureInCelsius
        }
      }

      func addGivenActor() {
        TemperatureEvent.addListener(self) { (self: isolated Model, event) in
          self.latest = event.temperatureInCelsius
        }
      }
    }
  }
}

// They run one after the other, since they count the receivers of their events on the shared central.
@Suite("The examples of the listeners' symbols compile and run", .serialized)
struct SymbolExamplesListeners {
  typealias Symbols = SymbolsOfListeners

  @Test("a scope, and a property that is a handler")
  @MainActor
  func objects() {
    let dashboard = Symbols.Dashboard()
    let display = Symbols.Display()
    #expect(Symbols.TemperatureEvent(temperatureInCelsius: 21).queue() > 0)
    let (viewModel, mixer, store) = (Symbols.ViewModel(), Symbols.Mixer(), Symbols.Store())
    let audio = Symbols.Mixer.ownListener(mixer)
    #expect(audio.queueEvent(Symbols.BufferEvent()))
    Symbols.Store.listen(store)
    let model = Symbols.Model()
    Symbols.ViewModel.addMethod(model)
    withExtendedLifetime((dashboard, display, viewModel, mixer, store, model)) {}
  }

  @Test("closures and methods")
  func closuresAndMethods() {
    let model = Symbols.Model()
    model.addBoundMethod()
    let bound = model.addBoundMethodOfType()
    model.addMethods()
    model.addTrailingClosures()
    #expect(Symbols.TemperatureRatingEvent().queue() > 0)
    #expect(Symbols.TemperatureEvent(temperatureInCelsius: 22).queue() > 0)
    bound.remove()
    model.listener.end()
  }

  @Test("on an actor")
  func actors() async {
    let model = Symbols.OnActors.Model()
    await model.addIsolated()
    let isolated = await model.addIsolatedOfType()
    await model.addGivenActor()
    #expect(Symbols.TemperatureEvent(temperatureInCelsius: 23).queue() > 0)
    isolated.remove()
    model.listener.end()
  }
}
