// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// flags: -default-isolation MainActor
import EventCore

// The README's first example, in a module whose code is the MainActor's by default, and its form for a class:
// nothing is refused.

struct TemperatureEvent: Eventable {
  var temperatureInCelsius: Float
}

func firstEvent() async throws {
  TemperatureEvent.addListener(nil) { event in print("\(event.temperatureInCelsius) °C") }

  TemperatureEvent(temperatureInCelsius: 21).queue()
  try await Task.sleep(for: .milliseconds(100))
}

final class TemperatureModel {
  var celsius: Float = 0

  func start() {
    TemperatureEvent.addListener(self) { [weak self] event in
      self?.celsius = event.temperatureInCelsius
    }
    TemperatureEvent.addListener(nil, executeOn: .listenerThread) { event in
      print(event.temperatureInCelsius)
    }
  }
}
