// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift
import EventCoreTestSupport
import Testing

// Code that is not in the README of EventDrivenSwift: what its users write with its public names, and the
// forms that "Coming from EventDrivenSwift" gives where EventCore differs.

enum SeedMigration {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  /// Registers with the central, and names the types of its closures.
  class ViewModel {
    let heard = Log<Float>()
    var listenerHandle: EventListenerHandling?

    func onTemperatureEvent(_ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        heard.append(event.temperatureInCelsius)
    }

    init() {
        listenerHandle = EventCentral.addListener(self, onTemperatureEvent, forEventType: TemperatureEvent.self, executeOn: .listenerThread)
    }

    func listenByNames() {
        let callback: TypedEventCallback<TemperatureEvent> = onTemperatureEvent
        let filter: TypedEventFilterCallback<TemperatureEvent> = { event, _, _ in event.temperatureInCelsius > 0 }
        listenerHandle = EventCentral.addListener(self, callback, forEventType: TemperatureEvent.self, executeOn: .listenerThread, interestedIn: .custom, customFilter: filter)
    }
  }

  /// The listener ends with the object, since nothing that it holds retains it.
  class Released: EventListening {
    struct Event: Eventable { var number = 0 }
    let heard: Log<String>

    init(_ heard: Log<String>) {
        self.heard = heard
        Event.addListener(self, Released.onEvent, executeOn: .listenerThread)
        Event.addListener(self, { [weak self] _, _, _ in self?.heard.append("closure") }, executeOn: .listenerThread)
        registerListeners()
    }

    func onEvent(_ event: Event) {
        heard.append("method")
    }

    @EventMethod<Released, Event>(executeOn: .listenerThread)
    private var onEventToo = { (self, event: Event, priority: EventPriority, dispatchTime: DispatchTime) in
        self.heard.append("property")
    }
  }

  /// The form that the README prints, which retains the object.
  class Retained {
    struct Event: Eventable {}
    var listenerHandle: EventListenerHandling?

    func onEvent(_ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime) {}

    init() {
        listenerHandle = Event.addListener(self, onEvent, executeOn: .listenerThread)
    }
  }

  class Processor: EventThread, @unchecked Sendable {
    struct Event: Eventable { var number = 0 }
    let heard = Log<Int>()
    private let handler = Log<EventCallbackHandler>()

    override func registerEventListeners() {
        handler.append(addEventCallback(onEvent, forEventType: Event.self))
    }

    func onEvent(_ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        heard.append(event.number)
    }

    func stopListening() {
        for handler in handler.take() { handler.remove() }
    }
  }

  // A thread with a wrapped method, which its users unregister and prepare.
  class WrappedProcessor: EventThread, @unchecked Sendable {
    struct Event: Eventable { var number = 0 }
    let heard = Log<Int>()

    @EventThread.EventMethod<WrappedProcessor, Event>
    private var onEvent = { (self, event: Event, priority: EventPriority, dispatchTime: DispatchTime) in
      self.heard.append(event.number)
    }

    func unregisterAllListenersNow() {
        unregisterWrappedListeners()
    }

    func reg() {
        _onEvent.prepare(owner: self)
    }
  }
}

#if swift(>=6)
  @Suite("Coming from EventDrivenSwift, in Swift 6 mode", .serialized)
#else
  @Suite("Coming from EventDrivenSwift, in Swift 5 mode", .serialized)
#endif
struct SeedMigrationTests {
  typealias TemperatureEvent = SeedMigration.TemperatureEvent

  @Test("a listener is registered with the central, by the names of EventDrivenSwift")
  func centralAddListener() async {
    await offThePool {
      let viewModel = SeedMigration.ViewModel()
      EventCentral.queueEvent(TemperatureEvent(temperatureInCelsius: 1), priority: .normal)
      EventCentral[].queueEvent(TemperatureEvent(temperatureInCelsius: 2), priority: .normal)
      #expect(viewModel.heard.entries(atLeast: 2) == [1, 2])
      viewModel.listenerHandle?.remove()
      viewModel.listenByNames()
      EventCentral.queueEvent(TemperatureEvent(temperatureInCelsius: -1), priority: .normal)
      EventCentral.queueEvent(TemperatureEvent(temperatureInCelsius: 3), priority: .normal)
      #expect(viewModel.heard.entries(atLeast: 3) == [1, 2, 3])
      viewModel.listenerHandle?.remove()
    }
  }

  @Test("a listener without a requester lives until it is removed")
  func nilRequester() async {
    await offThePool {
      let heard = Log<Float>()
      let handle = EventCentral.addListener(nil, { (event: TemperatureEvent, _, _) in heard.append(event.temperatureInCelsius) }, forEventType: TemperatureEvent.self, executeOn: .listenerThread)
      for number in [1, 2, 3] as [Float] {
        TemperatureEvent(temperatureInCelsius: number).queue()
      }
      #expect(heard.entries(atLeast: 3) == [1, 2, 3])
      handle.remove()
      #expect(TemperatureEvent(temperatureInCelsius: 4).queue() == 0)
    }
  }

  @Test("an event whose type is not known is dispatched as what it is")
  func anyEventable() {
    let processor = SeedMigration.Processor()
    let events: [any Eventable] = [TemperatureEvent(temperatureInCelsius: 0), SeedMigration.Processor.Event(number: 1)]
    for event in events {
      event.queue()
      EventCentral.queueEvent(event, priority: .high)
      #expect(event.getEventTypeName() == String(reflecting: type(of: event)))
    }
    #expect(processor.drain())
    #expect(processor.heard.entries == [1, 1])
    #expect(TemperatureEvent.getEventTypeName() == String(reflecting: TemperatureEvent.self))
  }

  @Test("a callback of a thread is removed by its handle, which has its old name as well")
  func callbackHandler() {
    let processor = SeedMigration.Processor()
    processor.stopListening()
    #expect(SeedMigration.Processor.Event().queue() == 0)
    processor.cancel()
  }

  @Test("an event whose time has passed is dispatched before the call returns")
  func pastDeadline() {
    let processor = SeedMigration.Processor()
    let held = HeldThread(processor)
    SeedMigration.Processor.Event(number: 1).scheduleQueue(at: .now() - .seconds(1), priority: .normal)
    #expect(processor.eventCount == 1)
    held.letGo()
    #expect(processor.drain())
    #expect(processor.heard.entries == [1])
  }

  @Test("D4: a callback gets what is dispatched after its registration, not what waits already")
  func laterRegistration() {
    let processor = SeedMigration.Processor()
    let held = HeldThread(processor)
    let late = Log<Int>()
    SeedMigration.Processor.Event(number: 1).queue()
    processor.addEventCallback { (event: SeedMigration.Processor.Event) in late.append(event.number) }
    SeedMigration.Processor.Event(number: 2).queue()
    held.letGo()
    #expect(processor.drain())
    #expect(processor.heard.entries == [1, 2])
    #expect(late.entries == [2])
  }

  @Test("D9: a method without its object, a weak closure and a property end with their object")
  func released() async {
    await offThePool {
      let heard = Log<String>()
      weak var weakModel: SeedMigration.Released?
      do {
        let model = SeedMigration.Released(heard)
        weakModel = model
        SeedMigration.Released.Event().queue()
        #expect(heard.entries(atLeast: 3) == ["method", "closure", "property"])
      }
      #expect(waitUntil { weakModel == nil })
      #expect(waitUntil { SeedMigration.Released.Event().queue() == 0 })
      #expect(heard.entries.count == 3)
    }
  }

  @Test("D9: a bound method retains its object until the listener is removed")
  func retained() {
    weak var weakModel: SeedMigration.Retained?
    let handle: (any EventListenerHandling)?
    do {
      let model = SeedMigration.Retained()
      weakModel = model
      handle = model.listenerHandle
    }
    #expect(weakModel != nil)
    #expect(SeedMigration.Retained.Event().queue() == 1)
    handle?.removeAndWait()
    #expect(waitUntil { weakModel == nil })
  }

  @Test("a thread's wrapped methods are unregistered, and prepared again")
  func wrappedMethods() async {
    await offThePool {
      let processor = SeedMigration.WrappedProcessor()
      #expect(SeedMigration.WrappedProcessor.Event(number: 1).queue() == 1)
      #expect(processor.heard.entries(atLeast: 1) == [1])
      processor.unregisterAllListenersNow()
      #expect(SeedMigration.WrappedProcessor.Event(number: 2).queue() == 0)
      processor.reg()
      processor.reg()
      SeedMigration.WrappedProcessor.Event(number: 3).queue()
      #expect(processor.heard.entries(atLeast: 2) == [1, 3])
      processor.cancel()
    }
  }
}
