// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of "Where handlers run" and of the listeners' symbols, compiled as a user would.

import Dispatch
import EventCore
import Testing

enum TemperatureRating {
  case freezing, warm
}

struct TemperatureRatingEvent: Eventable {
  var temperatureInCelsius: Float
  var temperatureRating: TemperatureRating
}

// "The places": a method and a closure of the MainActor.
@MainActor
final class ShownTemperature {
  var text = ""

  func start() {
    TemperatureEvent.addListener(self, ShownTemperature.onTemperature)
    TemperatureRatingEvent.addListener(self) { @MainActor [weak self] event in
      self?.text = "\(event.temperatureRating)"
    }
  }

  func onTemperature(_ event: TemperatureEvent) { text = "\(event.temperatureInCelsius)" }
}

// "The places".
@MainActor
final class TemperatureRatingModel {
  var rating: TemperatureRating = .freezing

  init() {
    TemperatureRatingEvent.addListener(self, TemperatureRatingModel.onRating)
  }

  func onRating(_ event: TemperatureRatingEvent) {
    rating = event.temperatureRating
  }
}

// "The places": elsewhere, with the closure last.
final class LatestTemperature {
  init() {
    TemperatureEvent.addListener(self, executeOn: .listenerThread, interestedIn: .latestOnly) { event in
      print(event.temperatureInCelsius)
    }
  }
}

// "Which source".
func ownSource() -> EventListener {
  let audio = EventListener(name: "audio")
  TemperatureEvent.addListener(nil, executeOn: .listenerThread, on: audio) { event in
    print(event.temperatureInCelsius)
  }
  audio.queueEvent(TemperatureEvent(temperatureInCelsius: 20))
  return audio
}

// "A separate central".
final class PhysicsThread: EventThread, @unchecked Sendable {
  // It adds no state.
}

func worldOfItsOwn() -> (EventCentral, PhysicsThread, EventPool<ThumbnailThread>, EventNode) {
  let world = EventCentral()  // or EventCentral(core: .locking)
  let physics = PhysicsThread(on: world)
  let workers = EventPool<ThumbnailThread>(capacity: 2, on: world)
  let root = EventNode(core: world.core)
  TemperatureEvent.addListener(nil, executeOn: .listenerThread, on: world) { event in
    print(event.temperatureInCelsius)
  }
  TemperatureEvent(temperatureInCelsius: 20).queue(on: world)
  return (world, physics, workers, root)
}

// "A property can be a handler".
@MainActor
final class Thermometer: EventListening {
  var celsius: Float = 0

  @EventMethod<Thermometer, TemperatureEvent>(interestedIn: .latestOnly)
  private var onTemperature = { (self, event, priority, dispatchTime) in
    self.celsius = event.temperatureInCelsius
  }

  init() { registerListeners() }
}

// "On an actor".
actor Recorder {
  var temperatures: [Float] = []

  func start() {
    TemperatureEvent.addListener(nil) { event in
      self.temperatures.append(event.temperatureInCelsius)
    }
  }
}

func giveTo(_ recorder: Recorder) {
  TemperatureEvent.addListener(recorder) { (recorder: isolated Recorder, event) in
    recorder.temperatures.append(event.temperatureInCelsius)
  }
  // With an interest.
  TemperatureEvent.addListener(
    recorder,
    { (recorder: isolated Recorder, event) in
      recorder.temperatures.append(event.temperatureInCelsius)
    }, interestedIn: [.latestOnly, .youngerThan(.milliseconds(16))])
}

final class Display: EventListening {
  var rating: TemperatureRating = .freezing

  @EventMethod<Display, TemperatureRatingEvent>
  private var onRating = { (self, event, priority, dispatchTime) in
    self.rating = event.temperatureRating
  }
}

actor Room {
  private let display = Display()

  func start() {
    display.registerListeners()
  }
}

// "Somebody has to serve the main queue".
struct Server {
  static func main() async throws {
    TemperatureEvent.addListener(nil) { @MainActor event in
      print(event.temperatureInCelsius)
    }
    try await Task.sleep(for: .seconds(3600))
  }
}

// EventListener.
final class Mixer: Sendable {
  func onBuffer(_ event: TemperatureEvent) {}
}

func ownListener(_ mixer: Mixer) {
  let audio = EventListener(name: "audio")
  TemperatureEvent.addListener(mixer, Mixer.onBuffer, executeOn: .listenerThread, on: audio)
}

// UIEventThread.
final class StatusBar: UIEventThread, @unchecked Sendable {
  override func registerEventListeners() {
    addEventCallback(StatusBar.onTemperature)
    addEventCallback(
      StatusBar.onRating, interestedIn: [.latestOnly, .youngerThan(.milliseconds(16))])
  }

  @MainActor func onTemperature(_ event: TemperatureEvent) {}

  @MainActor func onRating(_ event: TemperatureRatingEvent) {}
}

// The forms of the documents of EventDrivenSwift that Swift 6 takes, in a class that is not Sendable.
@MainActor
class TemperatureRatingViewModel {
  var temperatureInCelsius: Float = 0
  var temperatureRating: TemperatureRating = .freezing

  var listenerHandle: EventListenerHandling?

  func onTemperatureRatingEvent(
    _ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime
  ) {
    temperatureInCelsius = event.temperatureInCelsius
    temperatureRating = event.temperatureRating
  }

  func onTemperatureRatingEventFilter(
    _ event: TemperatureRatingEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime
  ) -> Bool {
    event.temperatureInCelsius <= 50
  }

  init() {
    listenerHandle = TemperatureRatingEvent.addListener(self, onTemperatureRatingEvent)
    listenerHandle?.remove()
    listenerHandle = TemperatureRatingEvent.addListener(
      self, onTemperatureRatingEvent, interestedIn: .latestOnly)
    listenerHandle?.remove()
    listenerHandle = TemperatureRatingEvent.addListener(
      self, onTemperatureRatingEvent, interestedIn: .youngerThan,
      maximumAge: 1 * 1_000_000_000)
    listenerHandle?.remove()
    listenerHandle = TemperatureRatingEvent.addListener(
      self, onTemperatureRatingEvent, interestedIn: .custom,
      customFilter: onTemperatureRatingEventFilter)
    listenerHandle?.remove()
  }
}

@Suite("The listeners' examples compile and run", .serialized)
struct ListenerExamples {
  @Test("all of them can be made and released")
  @MainActor
  func make() async {
    _ = TemperatureRatingModel()
    _ = LatestTemperature()
    _ = worldOfItsOwn()
    _ = Thermometer()
    let recorder = Recorder()
    await recorder.start()
    giveTo(recorder)
    ownSource().end()
    let room = Room()
    await room.start()
    ownListener(Mixer())
    _ = StatusBar()
    _ = TemperatureRatingViewModel()
    // Not a TemperatureEvent, since the README's examples count those on the shared central.
    TemperatureRatingEvent(temperatureInCelsius: 1, temperatureRating: .warm).queue()
  }
}

// "The newest of each key".
struct Moved: Conflatable {
  var entity: Int
  var position: SIMD3<Float>
  var conflationKey: Int { entity }
}

func conflate(_ renderer: EventThread) {
  renderer.addEventCallback(
    { (event: Moved) in print(event.entity, event.position) }, interestedIn: .latestPerKey)
}
