// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift
import EventCoreTestSupport
import Testing

#if canImport(Combine)
  import Combine
#endif

// They run one after the other, since some share an event type, and so its receivers on the shared central.
#if swift(>=6)
  @Suite("EventDrivenSwift's examples, in Swift 6 mode", .serialized)
#else
  @Suite("EventDrivenSwift's examples, in Swift 5 mode", .serialized)
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

  @Test("an observer is called, and a reciprocal event is dispatched")
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

  @Test("a scheduled event comes at its time, never before, and no main queue is needed")
  func scheduling() async {
    struct Arrival: Sendable {
      let priority: EventPriority
      let dispatchTime: DispatchTime
    }
    let arrivals = Log<Arrival>()
    let thread = EventThread()
    thread.addEventCallback { (_: SeedScheduling.TemperatureEvent, priority, dispatchTime) in
      arrivals.append(Arrival(priority: priority, dispatchTime: dispatchTime))
    }
    let before = EventCentral.shared.scheduleStatistics.pending
    SeedScheduling.inFourSeconds(.init(temperatureInCelsius: 23.25))
    // These two stay pending, since the test does not wait four seconds.
    #expect(EventCentral.shared.scheduleStatistics.pending >= before + 2)
    let time = SeedScheduling.soon(.init(temperatureInCelsius: 23.25))
    await offThePool { _ = arrivals.entries(atLeast: 2) }
    thread.cancel()
    for arrival in arrivals.entries {
      #expect(arrival.priority == .highest)
      #expect(arrival.dispatchTime >= time)
    }
  }

  // MARK: Listeners on the MainActor, where view models register them and are called.

  @MainActor
  @Test("a listener is called where it registered, until it is removed")
  func listener() async {
    let viewModel = SeedListener.TemperatureRatingViewModel()
    typealias Event = SeedListener.TemperatureRatingEvent

    #expect(Event(temperatureInCelsius: 25.5, temperatureRating: .reallyHot).queue() == 1)
    #expect(viewModel.temperatureInCelsius == 0)
    #expect(await yieldUntil { viewModel.temperatureInCelsius == 25.5 })
    #expect(viewModel.temperatureRating == .reallyHot)
    viewModel.remove()
    #expect(Event(temperatureInCelsius: 1, temperatureRating: .reallyCold).queue() == 0)
  }

  @MainActor
  @Test("a listener on the listener thread, and one in a task")
  func listenerElsewhere() async {
    final class Model: SeedListener.TemperatureRatingViewModel {
      let called = Gate()
      override func onTemperatureRatingEvent(
        _ event: SeedListener.TemperatureRatingEvent, _ priority: EventPriority,
        _ dispatchTime: DispatchTime
      ) {
        super.onTemperatureRatingEvent(event, priority, dispatchTime)
        called.open()
      }
    }
    let viewModel = Model()
    viewModel.remove()
    for (number, place) in [viewModel.executeOnListenerThread, viewModel.executeOnTaskThread].enumerated() {
      place()
      SeedListener.TemperatureRatingEvent(
        temperatureInCelsius: Float(number + 1), temperatureRating: .reallyCold
      ).queue()
      await offThePool { [called = viewModel.called] in called.pass() }
      viewModel.listenerHandle?.removeAndWait()
      #expect(viewModel.temperatureInCelsius == Float(number + 1))
    }
  }

  @MainActor
  @Test("a latest-only listener gets the last of several waiting events")
  func latestOnly() async {
    final class Model: SeedLatestOnly.TemperatureRatingViewModel {
      var calls = 0
      override func onTemperatureRatingEvent(
        _ event: SeedLatestOnly.TemperatureRatingEvent, _ priority: EventPriority,
        _ dispatchTime: DispatchTime
      ) {
        super.onTemperatureRatingEvent(event, priority, dispatchTime)
        calls += 1
      }
    }
    let viewModel = Model()
    for temperature in 1...100 {
      SeedLatestOnly.TemperatureRatingEvent(
        temperatureInCelsius: Float(temperature), temperatureRating: .reallyHot
      ).queue()
    }
    #expect(await yieldUntil { viewModel.calls > 0 })
    #expect(viewModel.temperatureInCelsius == 100)
    #expect(viewModel.calls == 1)
    #expect(viewModel.listenerHandle?.skippedCount == 99)
    viewModel.listenerHandle?.remove()
  }

  @MainActor
  @Test("a listener with a maximum age gets younger events")
  func maximumAge() async {
    let viewModel = SeedMaximumAge.TemperatureRatingViewModel()
    let isCalled = await yieldUntil {
      // Dispatched again and again, since a busy machine may take longer than the second that is allowed.
      SeedMaximumAge.TemperatureRatingEvent(
        temperatureInCelsius: 22, temperatureRating: .hot
      ).queue()
      return viewModel.temperatureInCelsius == 22
    }
    #expect(isCalled && viewModel.temperatureRating == .hot)
    viewModel.listenerHandle?.remove()
  }

  @MainActor
  @Test("a custom filter turns away temperatures above 50 degrees")
  func customFilter() async {
    let viewModel = SeedCustomFilter.TemperatureRatingViewModel()
    for temperature in [50, 51, 100] as [Float] {
      SeedCustomFilter.TemperatureRatingEvent(
        temperatureInCelsius: temperature, temperatureRating: .reallyHot
      ).queue()
    }
    #expect(await yieldUntil { viewModel.listenerHandle?.skippedCount == 2 })
    #expect(viewModel.temperatureInCelsius == 50)
    viewModel.listenerHandle?.remove()
  }

  @MainActor
  @Test("a UIEventThread calls back on the MainActor")
  func uiEventThread() async {
    let processor = SeedUIThread.TemperatureProcessor()
    SeedUIThread.TemperatureEvent(temperatureInCelsius: 3).queue()
    #expect(processor.temperatureInCelsius == 0)
    #expect(await yieldUntil { processor.temperatureInCelsius == 3 })
    processor.cancel()
  }

  /// Not in the README: how such a view model is written today.
  @MainActor
  @Test("a view model that belongs to the MainActor registers the same way")
  func mainActorViewModel() async {
    struct Event: Eventable { var celsius: Float }
    @MainActor
    final class ViewModel: ObservableObject {
      @Published var celsius: Float = 0
      var listenerHandle: EventListenerHandling?

      func onEvent(_ event: Event, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
        celsius = event.celsius
      }

      init() {
        listenerHandle = Event.addListener(self, onEvent)
      }
    }
    let viewModel = ViewModel()
    Event(celsius: 7).queue()
    #expect(await yieldUntil { viewModel.celsius == 7 })
    viewModel.listenerHandle?.remove()
  }
}
