// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the README and the documentation, compiled as a user would: no @testable, no C.

import Dispatch
import EventCore
import Synchronization
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
    print("processing \(event.temperatureInCelsius) °C")
  }
}

func process() async {
  let processor = TemperatureProcessor()
  TemperatureEvent(temperatureInCelsius: 23.25).queue()
  TemperatureEvent(temperatureInCelsius: 90).stack(priority: .highest)
  await processor.drain()
}

// README, "The first event", as a class writes it.
@MainActor
final class TemperatureModel {
  var celsius: Float = 0

  func start() {
    TemperatureEvent.addListener(self) { [weak self] event in
      self?.celsius = event.temperatureInCelsius
    }
  }
}

// "Coming from EventDrivenSwift": a bound method, which retains the thread until cancel().
final class SeedProcessor: EventThread, @unchecked Sendable {
  override func registerEventListeners() {
    addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
  }

  func onTemperatureEvent(
    _ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime
  ) {}
}

// README, "What you want, and what to use": elsewhere, and the newest only.
final class TemperatureLabel: Sendable {
  let text = Mutex("")

  init() {
    TemperatureEvent.addListener(
      self, TemperatureLabel.onTemperature, executeOn: .listenerThread,
      interestedIn: [.latestOnly, .youngerThan(.milliseconds(16))])
  }

  func onTemperature(_ event: TemperatureEvent) {
    text.withLock { $0 = "\(event.temperatureInCelsius) °C" }
  }
}

enum ReadmeTree {
  struct ItemAdded: Eventable {
    var count: Int
  }

  struct ShopEvents {
    enum Products: CoordinateEvents, Equatable {
      case setFavorite(_ product: Int)
    }
  }

  final class View: EventResponder, Coordinated {
    weak var parentCoordinator: Coordinator?
    var nextResponder: (any EventResponder)? { nil }
  }
}

// They run one after the other, since they use the shared central, as a reader of the README does.
@Suite("Every example compiles and runs", .serialized)
struct ReadmeExamples {
  @Test("the first event")
  @MainActor
  func firstEvent() async {
    let handle = TemperatureEvent.addListener(nil) { event in print("\(event.temperatureInCelsius) °C") }
    #expect("\(handle.executesOn)" == "mainQueue")
    TemperatureEvent(temperatureInCelsius: 21).queue()
    await handle.removed()

    let model = TemperatureModel()
    model.start()
    withExtendedLifetime(model) {}
  }

  @Test("an event thread")
  func eventThread() async {
    let processor = TemperatureProcessor()
    TemperatureEvent(temperatureInCelsius: 23.25).queue()
    TemperatureEvent(temperatureInCelsius: 90).stack(priority: .highest)
    #expect(await processor.drain())
    #expect(processor.statistics.delivered == 2)
    await process()
  }

  @Test("an event thread as the documents of EventDrivenSwift print it")
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

  @Test("a separate central, a handle, a batch")
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

  @Test("a listener, a schedule, a pool")
  func listenerSchedulePool() {
    let label = TemperatureLabel()
    TemperatureEvent(temperatureInCelsius: 40).scheduleQueue(after: .milliseconds(20), priority: .high)
    let pulse = TemperatureEvent(temperatureInCelsius: 37).scheduleQueue(every: .seconds(1))
    pulse.cancel()
    let pool = EventPool<TemperatureProcessor>(
      capacity: 4, balancer: .lowestLoad)
    pool.capacity = 8
    TemperatureEvent(temperatureInCelsius: 21).queue()
    #expect(pool.drain())
    #expect(pool.statistics.delivered >= 1)
    withExtendedLifetime(label) {}
  }

  @Test("a tree, a coordinator")
  func treeAndCoordinator() {
    let app = EventNode(name: "app")
    let cart = EventNode(parent: app, name: "cart")
    let badge = EventNode(parent: app, name: "badge")
    badge.addHandler { (event: ReadmeTree.ItemAdded) in print("\(event.count) in the cart") }
    #expect(cart.raise(event: ReadmeTree.ItemAdded(count: 1)).handlerCount == 1)

    let view = ReadmeTree.View()
    let coordinator = Coordinator(rootResponder: view)
    coordinator.intercept(ReadmeTree.ShopEvents.Products.self) { event in .handled }
    #expect(view.emitEvent(ReadmeTree.ShopEvents.Products.setFavorite(7)) == .handled)
  }
}
