// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the symbols of threads, pools and schedules, compiled as a user would.

import Dispatch
import EventCore
import Testing

/// A namespace, since the examples of other symbols have types of the same names.
enum SymbolsOfThreads {
  // Eventable.
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  @discardableResult
  static func dispatch() -> Int {
    TemperatureEvent(temperatureInCelsius: 23.25).queue()
  }

  // EventThread.
  final class TemperatureProcessor: EventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback(TemperatureProcessor.onTemperature)
    }

    func onTemperature(_ event: TemperatureEvent) {
      print(event.temperatureInCelsius)
    }
  }

  // EventThread.init().
  final class DatabaseThread: EventThread, @unchecked Sendable {
    let path: String

    init(path: String) {
      self.path = path
      super.init()
    }

    @available(*, unavailable, message: "needs a database")
    required init() { preconditionFailure("needs a database") }
  }

  // UIEventThread.
  final class StatusBar: UIEventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback(StatusBar.onTemperature)
    }

    @MainActor func onTemperature(_ event: TemperatureEvent) { print(event) }
  }

  @MainActor
  final class Label { var text = "" }

  @MainActor
  static func show(on label: Label, by statusBar: StatusBar) {
    statusBar.addEventCallback { @MainActor @Sendable (event: TemperatureEvent) in
      label.text = "\(event.temperatureInCelsius) °C"
    }
  }

  // EventThread.addEventCallback, with an interest and with several.
  struct Frame: Eventable {}
  struct FrameEvent: Eventable {}

  final class Renderer: EventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback({ (event: Frame) in draw(event) }, interestedIn: .latestOnly)
    }
  }

  @Sendable static func draw(_ event: Frame) {}
  @Sendable static func draw(_ event: FrameEvent) {}

  // EventPoolDynamicScaler.
  struct ImageEvent: Eventable {}

  final class ImageProcessor: EventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback(ImageProcessor.onImage)
    }

    func onImage(_ event: ImageEvent) {}
  }

  // EventPoolKeyedBalancer.
  struct OrderEvent: Eventable {
    var customer = 0
  }

  struct PaymentEvent: Eventable {
    var customer = 0
  }

  final class OrderProcessor: EventThread, @unchecked Sendable {
    override func registerEventListeners() {
      addEventCallback(OrderProcessor.onOrder)
      addEventCallback(OrderProcessor.onPayment)
    }

    func onOrder(_ event: OrderEvent) {}
    func onPayment(_ event: PaymentEvent) {}
  }

  // EventScheduleHandle.
  struct Reminder: Eventable {
    var text: String
  }
}

// They run one after the other, since they count the receivers of their events on the shared central.
@Suite("The examples of the symbols of threads compile and run", .serialized)
struct SymbolExamplesThreads {
  typealias Symbols = SymbolsOfThreads
  typealias FrameEvent = Symbols.FrameEvent
  typealias ImageProcessor = Symbols.ImageProcessor
  typealias OrderEvent = Symbols.OrderEvent
  typealias OrderProcessor = Symbols.OrderProcessor
  typealias PaymentEvent = Symbols.PaymentEvent
  typealias Reminder = Symbols.Reminder
  typealias TemperatureEvent = Symbols.TemperatureEvent
  typealias TemperatureProcessor = Symbols.TemperatureProcessor

  @Test("an event, and threads")
  func threads() {
    let processor = TemperatureProcessor()
    #expect(Symbols.dispatch() == 1)
    #expect(processor.drain())
    #expect(processor.statistics.delivered == 1)

    #expect(Symbols.DatabaseThread(path: "shop.db").drain())
    let bar = Symbols.StatusBar()
    #expect(Symbols.dispatch() == 1)
    bar.cancel()
  }

  @Test("a closure of a UIEventThread may touch what the MainActor guards")
  @MainActor
  func closureOnTheMainActor() async {
    let (label, statusBar) = (Symbols.Label(), Symbols.StatusBar())
    Symbols.show(on: label, by: statusBar)
    await withCheckedContinuation { continuation in
      statusBar.addEventCallback { (_: Symbols.FrameEvent) in continuation.resume() }
      statusBar.queueEvent(Symbols.TemperatureEvent(temperatureInCelsius: 21.5))
      statusBar.queueEvent(Symbols.FrameEvent())
    }
    #expect(label.text == "21.5 °C")
    statusBar.cancel()
  }

  @Test("callbacks with interests")
  func interests() {
    let renderer = Symbols.Renderer()
    #expect(Symbols.Frame().queue() == 1)
    #expect(renderer.drain())

    let thread = EventThread()
    let draw: @Sendable (FrameEvent) -> Void = Symbols.draw
    thread.addEventCallback(
      draw, forEventType: FrameEvent.self,
      interestedIn: [.latestOnly, .youngerThan], maximumAge: 16_000_000)
    thread.addEventCallback(
      { (event: TemperatureEvent) in print(event.temperatureInCelsius) },
      interestedIn: .youngerThan, maximumAge: 1_000_000_000)
    #expect(FrameEvent().queue() == 1)
    #expect(Symbols.dispatch() == 1)
    #expect(thread.drain())
  }

  @Test("a pool")
  func pool() {
    let pool = EventPool<TemperatureProcessor>(capacity: 5)
    TemperatureEvent(temperatureInCelsius: 23.25).queue()  // one of the five handles it
    #expect(pool.drain())
    #expect(pool.statistics.delivered == 1)
  }

  @Test("a pool whose threads are made by a closure")
  func poolByClosure() {
    let connections = Array(repeating: Connection(), count: 4)
    let pool = EventPool(capacity: 4) { index in
      StorageThread(connection: connections[index])
    }
    #expect(pool.queueEvent(SaveEvent()))
    #expect(pool.drain())
  }

  @Test("a pool with a scaler, and one with keys")
  func scalerAndKeys() {
    let scaled =
      EventPool<ImageProcessor>(
        capacity: 2, scaler: EventPoolDynamicScaler(minimum: 2, maximum: 8))
    #expect(Symbols.ImageEvent().queue() == 1)
    #expect(scaled.drain())

    let keyed =
      EventPool<OrderProcessor>(
        capacity: 5,
        balancer: EventPoolKeyedBalancer { (order: OrderEvent) in order.customer }
          .keyed { (payment: PaymentEvent) in payment.customer })
    #expect(OrderEvent(customer: 7).queue() == 1)
    #expect(PaymentEvent(customer: 7).queue() == 1)
    #expect(keyed.drain())
    #expect(keyed.statistics.delivered == 2)
  }

  @Test("schedules")
  func schedules() {
    let reminder = Reminder(text: "tea").scheduleQueue(after: .seconds(180))
    if reminder.cancel() { print("in time") }
    #expect(reminder.state == .cancelled)
    scheduleStack(Reminder(text: "coffee"))
  }

  private func scheduleStack(_ reminder: Reminder) {
    reminder.scheduleQueue(at: .now() + .seconds(4), priority: .highest)
    reminder.scheduleStack(at: .now() + .seconds(4), priority: .highest)
  }
}
