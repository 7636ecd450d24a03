// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the README and the documentation, compiled as a user would: no @testable, no C.

import Dispatch
import EventCore
import Testing

// README, "The first event".
struct TemperatureEvent: Eventable {
  var temperatureInCelsius: Float
}

final class TemperatureProcessor: EventThread, @unchecked Sendable {
  override func registerEventListeners() {
    addEventCallback(TemperatureProcessor.onTemperature)
  }

  func onTemperature(_ event: TemperatureEvent) {
    print("\(event.temperatureInCelsius) °C")
  }
}

// README, "Coming from EventDrivenSwift": the seed's form, which retains the thread until cancel().
final class SeedProcessor: EventThread, @unchecked Sendable {
  override func registerEventListeners() {
    addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
  }

  func onTemperatureEvent(
    _ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime
  ) {}
}

// One after the other: they share the shared central, as the README's reader would.
@Suite("Every example compiles and runs", .serialized)
struct ReadmeExamples {
  @Test("the first event")
  func firstEvent() {
    let processor = TemperatureProcessor()
    TemperatureEvent(temperatureInCelsius: 23.25).queue()
    TemperatureEvent(temperatureInCelsius: 90).stack(priority: .highest)
    #expect(processor.drain())
    #expect(processor.statistics.delivered == 2)
  }

  @Test("the seed's form")
  func seedForm() {
    let processor = SeedProcessor()
    let temperatureEvent = TemperatureEvent(temperatureInCelsius: 23.25)
    temperatureEvent.queue()
    temperatureEvent.queue(priority: .highest)
    temperatureEvent.stack()
    temperatureEvent.stack(priority: .highest)
    #expect(processor.drain())
    #expect(processor.statistics.delivered == 4)
  }

  @Test("a central of one's own, a handle, a batch")
  func centralHandleBatch() {
    let world = EventCentral()
    let thread = EventThread(on: world, waitStrategy: .spinThenPark(.microseconds(50)), name: "physics")
    let handle = thread.addEventCallback { (event: TemperatureEvent, priority, dispatchTime) in
      print(event.temperatureInCelsius, priority, dispatchTime.uptimeNanoseconds)
    }
    [20, 21, 22].map { TemperatureEvent(temperatureInCelsius: $0) }.queue(on: world)
    #expect(thread.drain(until: .now() + .seconds(60)))
    handle.remove()
  }
}
