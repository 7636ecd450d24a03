// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the observers' symbols and of ThreadSafeSemaphore, compiled as a user would.

import EventDrivenSwift
import EventCoreTestSupport
import Testing

/// A namespace, since the examples of other symbols have types of the same names.
enum SymbolsOfObservers {
  // Observable.
  protocol TemperatureObserver: AnyObject {
    func onTemperature(_ celsius: Float)
  }

  final class TemperatureDisplay: TemperatureObserver {
    private(set) var celsius: Float = 0

    func onTemperature(_ celsius: Float) { self.celsius = celsius }
  }

  // KeyedObservable.
  protocol PriceObserver: AnyObject {
    func onPrice(of key: String, _ price: Int)
  }

  final class PriceDisplay: PriceObserver {
    private(set) var prices: [String: Int] = [:]

    func onPrice(of key: String, _ price: Int) { prices[key] = price }
  }

  // EventThread.withObservers(_:).
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  protocol TemperatureProcessorObserver: AnyObject {
    func onTemperatureEvent(temperatureInCelsius: Float)
  }

  final class TemperatureProcessor: EventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback(TemperatureProcessor.onTemperature)
    }

    func onTemperature(_ event: TemperatureEvent) {
      withObservers { (observer: TemperatureProcessorObserver) in
        observer.onTemperatureEvent(temperatureInCelsius: event.temperatureInCelsius)
      }
    }
  }

  final class Recorder: TemperatureProcessorObserver, Sendable {
    let temperatures = Log<Float>()

    func onTemperatureEvent(temperatureInCelsius: Float) {
      temperatures.append(temperatureInCelsius)
    }
  }

  // ThreadSafeSemaphore.
  final class Thermometer {
    @ThreadSafeSemaphore public var temperatureInCelsius: Float = Float.zero
    @ThreadSafeSemaphore var count = 0

    func increment() {
      _count.withLock { $0 += 1 }
      $count.withLock { $0 += 1 }
    }
  }
}

@Suite("The examples of the observers' symbols compile and run")
struct SymbolExamplesObservers {
  typealias PriceObserver = SymbolsOfObservers.PriceObserver
  typealias TemperatureObserver = SymbolsOfObservers.TemperatureObserver

  @Test("Observable")
  func observable() {
    let thermometer = ObservableClass()
    let display = SymbolsOfObservers.TemperatureDisplay()
    thermometer.addObserver(display)
    thermometer.withObservers { (observer: TemperatureObserver) in
      observer.onTemperature(21.5)
    }
    #expect(display.celsius == 21.5)
  }

  @Test("KeyedObservable")
  func keyedObservable() {
    let prices = KeyedObservableClass()
    let display = SymbolsOfObservers.PriceDisplay()
    prices.addKeyedObserver(keys: ["ACME", "ROAD"], display)
    prices.withKeyedObservers(key: "ACME") { (key, observer: PriceObserver) in
      observer.onPrice(of: key, 17)
    }
    #expect(display.prices == ["ACME": 17])
  }

  @Test("EventThread.withObservers(_:)")
  func threads() {
    let processor = SymbolsOfObservers.TemperatureProcessor()
    let recorder = SymbolsOfObservers.Recorder()
    processor.addObserver(recorder, executeOn: .notifyingThread)
    processor.queueEvent(SymbolsOfObservers.TemperatureEvent(temperatureInCelsius: 21.5))
    #expect(processor.drain())
    #expect(recorder.temperatures.entries == [21.5])
  }

  @Test("ThreadSafeSemaphore")
  func semaphore() {
    let thermometer = SymbolsOfObservers.Thermometer()
    thermometer.temperatureInCelsius = 21.5
    thermometer.increment()
    #expect(thermometer.temperatureInCelsius == 21.5)
    #expect(thermometer.count == 2)
  }
}
