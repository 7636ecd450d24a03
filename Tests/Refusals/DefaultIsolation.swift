// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// flags: -default-isolation MainActor
import Dispatch
import EventDrivenSwift

// The README's first example, in a module whose code is the MainActor's by default, its form for a class, events of
// coordinators, a tree, and an event thread with the wrappers of EventDrivenSwift: nothing is refused.

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

nonisolated struct Product: Hashable {
  var number = 0
}

enum ShopEvents: CoordinateEvents, Equatable {
  case didSelect(_ product: Product)
}

final class ShopCoordinator: UICoordinator {
  private var favorites: Set<Product> = []

  func start(_ product: Product) {
    intercept(ShopCoordinator.onShop)
    emitEvent(ShopEvents.didSelect(product))
  }

  func onShop(_ event: ShopEvents) -> EventInterception {
    guard case .didSelect(let product) = event else { return .pass }
    favorites.insert(product)
    return .handled
  }
}

nonisolated class ThermometerNode: EventNode, @unchecked Sendable {
  // It adds no state.

  func measure() { raise(event: TemperatureEvent(temperatureInCelsius: 21)) }
}

final class TemperatureLabel {
  private var text = ""

  func follow(_ node: EventNode) {
    node.addHandler(executeOn: MainActor.shared) { [weak self] (event: TemperatureEvent) in
      self?.onTemperature(event)
    }
  }

  func onTemperature(_ event: TemperatureEvent) { text = "\(event.temperatureInCelsius) °C" }
}

nonisolated class Thermometer: EventThread, @unchecked Sendable {
  // The wrappers' own state is locked, or constant. Without the word the two do not compile, whatever the warning says.
  // expected-warning@+1 {{'nonisolated(unsafe)' has no effect}}
  @ThreadSafeSemaphore nonisolated(unsafe) var celsius: Float = 0
  // expected-warning@+1 {{'nonisolated(unsafe)' has no effect}}
  @EventMethod<Thermometer, TemperatureEvent> nonisolated(unsafe) private var onTemperature = {
    (self, event: TemperatureEvent, priority: EventPriority, time: DispatchTime) in
    self.celsius = event.temperatureInCelsius
  }
}
