// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of "Shutting down", and of a separate central in "Where handlers run".

import EventCore
import EventCoreTestSupport
import Testing

final class ConsoleLabel {
  init(on world: EventCentral) {
    TemperatureEvent.addListener(
      self, executeOn: .listenerThread, interestedIn: .latestOnly, on: world
    ) { event in
      print(event.temperatureInCelsius)
    }
  }
}

@Suite("The examples of shutting down, and of a separate central")
struct ShutdownExamples {
  // No state of its own.
  final class Forwarder: EventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback(Forwarder.onImage)
    }

    func onImage(_ event: ImageEvent) {
      TemperatureEvent(temperatureInCelsius: Float(event.number)).queue(on: central)
    }
  }

  @Test("a shutdown in the order of the flow loses nothing")
  func orderOfTheFlow() {
    let world = EventCentral()
    let sensors = Forwarder(on: world)
    let pool = EventPool<TemperatureProcessor>(capacity: 2, on: world)
    let listeners = EventListenerScope()
    let log = Log<Float>()
    TemperatureEvent.addListener(nil, executeOn: .listenerThread, on: world) { event in
      log.append(event.temperatureInCelsius)
    }.stored(in: listeners)
    let sampling = ImageEvent().scheduleQueue(every: .seconds(3600), on: world)
    for number in 0..<10 { ImageEvent(number: number).queue(on: world) }

    sampling.cancel()
    #expect(sensors.drain())
    #expect(pool.drain())
    #expect(log.entries(atLeast: 10) == (0..<10).map(Float.init))
    listeners.endAndWait()
    #expect(sensors.statistics.delivered == 10)
    #expect(pool.statistics.delivered == 10)
    #expect(world.listener.statistics == .init(delivered: 10, skipped: 0, cancelled: 0))
  }

  @Test("a scope ends its listeners")
  func scope() {
    struct Score: Eventable { var points = 0 }
    let world = EventCentral()

    let listeners = EventListenerScope()
    Score.addListener(nil, executeOn: .listenerThread, on: world) { score in print(score.points) }
      .stored(in: listeners)
    listeners.end()

    #expect(Score().queue(on: world) == 0)
  }

  @Test("a separate central has threads, pools, trees and listeners of its own")
  func world() {
    let world = EventCentral()
    let physics = Forwarder(on: world)
    let workers = EventPool<ThumbnailThread>(capacity: 2, on: world)
    let root = EventNode(core: world.core)
    let log = Log<Float>()
    let label = ConsoleLabel(on: world)
    TemperatureEvent.addListener(nil, executeOn: .listenerThread, on: world) { event in
      log.append(event.temperatureInCelsius)
    }
    TemperatureEvent(temperatureInCelsius: 20).queue(on: world)
    #expect(log.entries(atLeast: 1) == [20])
    #expect(physics.drain() && workers.drain())
    withExtendedLifetime((root, label)) {}
  }

  @Test(
    "D10: an event that a draining thread dispatches to itself is refused, and the dispatch says so",
    arguments: EventCentral.Core.available)
  func drainTakesNothingNew(core: EventCentral.Core) {
    let world = EventCentral(core: core)
    let thread = EventThread(on: world)
    let (held, accepted) = (Gate(), Log<Int>())
    thread.addEventCallback { (event: ImageEvent) in
      if event.number == 1 { held.pass() }
      accepted.append(TemperatureEvent(temperatureInCelsius: 1).queue(on: world))
    }
    thread.addEventCallback { (event: TemperatureEvent) in }
    for number in 1...3 { ImageEvent(number: number).queue(on: world) }
    onThreads(2) { index in
      if index == 0 {
        #expect(thread.drain())
      } else {
        // The thread leaves one type after the other.
        #expect(
          waitUntil {
            ImageEvent().queue(on: world) == 0
              && TemperatureEvent(temperatureInCelsius: 0).queue(on: world) == 0
          })
        held.open()
      }
    }
    #expect(accepted.entries.count >= 3)
    #expect(accepted.entries.allSatisfy { $0 == 0 })
  }
}
