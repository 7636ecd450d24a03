// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

#if swift(>=6)
  @Suite("EventDrivenSwift's examples, in Swift 6 mode")
#else
  @Suite("EventDrivenSwift's examples, in Swift 5 mode")
#endif
struct SeedTests {
  @Test("an event is dispatched in four ways to a thread")
  func dispatch() {
    let temperatureProcessor = SeedThread.TemperatureProcessor()
    SeedThread.dispatch()
    #expect(temperatureProcessor.drain())
    #expect(temperatureProcessor.statistics.delivered == 4)
  }

  @Test("the playground: the processor's values before and after an event")
  func playground() {
    typealias TemperatureProcessor = SeedValues.TemperatureProcessor
    typealias TemperatureEvent = SeedValues.TemperatureEvent

    let temperatureProcessor = TemperatureProcessor()
    #expect("Temp in C: \(temperatureProcessor.temperatureInCelsius)" == "Temp in C: 0.0")
    #expect("Temp Rating: \(temperatureProcessor.temperatureRating)" == "Temp Rating: freezing")
    TemperatureEvent(temperatureInCelsius: 25.5).queue()
    #expect(temperatureProcessor.drain())
    #expect("Temp in C: \(temperatureProcessor.temperatureInCelsius)" == "Temp in C: 25.5")
    #expect("Temp Rating: \(temperatureProcessor.temperatureRating)" == "Temp Rating: reallyHot")
  }

  @Test("an observer is told, and a reciprocal event comes")
  func observerAndReciprocalEvent() async {
    final class Display: SeedObserver.TemperatureProcessorObserver {
      let shown = Log<Float>()
      func onTemperatureEvent(temperatureInCelsius: Float) { shown.append(temperatureInCelsius) }
    }
    let temperatureProcessor = SeedObserver.TemperatureProcessor()
    let ratingProcessor = SeedObserver.TemperatureRatingProcessor()
    let display = Display()
    temperatureProcessor.addObserver(display)
    for temperature in [-4, 0, 100] as [Float] {
      SeedObserver.TemperatureEvent(temperatureInCelsius: temperature).queue()
    }
    await offThePool { [shown = display.shown] in _ = shown.entries(atLeast: 3) }
    #expect(display.shown.entries == [-4, 0, 100])
    #expect(temperatureProcessor.drain())
    #expect(ratingProcessor.drain())
    #expect(ratingProcessor.ratings == [.belowFreezing, .freezing, .boiling])
    temperatureProcessor.removeObserver(display)
  }
}
