// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of "Threads and pools" and of the pool's documentation.

import EventCore
import Synchronization
import Testing

struct ImageEvent: Eventable {
  var number = 0
  var album = 0
}

final class ThumbnailThread: EventThread, @unchecked Sendable {
  static let handled = Atomic<Int>(0)

  override func registerEventListeners() {
    addEventCallback(ThumbnailThread.onImage)
  }

  func onImage(_ event: ImageEvent) {
    Self.handled.add(1, ordering: .releasing)
  }
}

struct Connection: Sendable {}

struct SaveEvent: Eventable {
  var customer = 0
}

struct PaymentEvent: Eventable {
  var customer = 0
}

final class StorageThread: EventThread, @unchecked Sendable {
  private let connection: Connection

  init(connection: Connection) {
    self.connection = connection
    super.init()
  }

  @available(*, unavailable, message: "needs a connection")
  required init() { preconditionFailure("needs a connection") }

  override func registerEventListeners() {
    addEventCallback(StorageThread.onSave)
    addEventCallback(StorageThread.onPayment)
  }

  func onSave(_ event: SaveEvent) {}
  func onPayment(_ event: PaymentEvent) {}
}

// A thread with an initialiser of its own that can do without.
final class NamedThread: EventThread, @unchecked Sendable {
  let label: String

  init(label: String) {
    self.label = label
    super.init(name: label)
  }

  required convenience init() { self.init(label: "unnamed") }
}

struct UrgentFirstBalancer: EventPoolBalancing {
  /// Thread 0 is kept for what is urgent.
  func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
    choice.priority >= .high ? 0 : choice.leastLoaded(from: 1)
  }
}

/// Doubles what is there when it is behind.
struct DoublingScaler: EventPoolScaling {
  var interval: Duration? { .milliseconds(100) }
  var restingCapacity: Int { 4 }

  func capacity(for reading: EventPoolReading) -> Int {
    reading.waiting > 1_000 ? min(16, reading.capacity * 2) : reading.capacity
  }
}

@Suite("The pool examples compile and run", .serialized)
struct PoolExamples {
  @Test("pools as the documents of EventDrivenSwift make them")
  func seedForms() {
    let plain = EventPool<ThumbnailThread>(capacity: 5)
    let roundRobin = EventPool<ThumbnailThread>(capacity: 5, balancer: EventPoolRoundRobinBalancer())
    let lowestLoad = EventPool<ThumbnailThread>(capacity: 5, balancer: .lowestLoad)
    _ = EventPool<ThumbnailThread>(
      capacity: 2, balancer: .byKey { (event: ImageEvent) in event.album }, on: EventCentral())
    let before = ThumbnailThread.handled.load(ordering: .acquiring)
    // n+1 events over n threads, in three pools.
    for number in 0..<6 { #expect(ImageEvent(number: number).queue() == 3) }
    for pool in [plain, roundRobin, lowestLoad] {
      #expect(pool.drain())
    }
    #expect(ThumbnailThread.handled.load(ordering: .acquiring) == before + 18)
  }

  @Test("a pool whose threads a closure makes, with keys, and its capacity at run time")
  func closureAndKeys() {
    let connections = Array(repeating: Connection(), count: 3)
    let world = EventCentral()
    var pool = EventPool(
      capacity: connections.count,
      balancer: EventPoolKeyedBalancer { (save: SaveEvent) in save.customer }
        .keyed { (payment: PaymentEvent) in payment.customer },
      on: world
    ) { index in
      StorageThread(connection: connections[index % connections.count])
    }
    for customer in 0..<10 {
      SaveEvent(customer: customer).queue(on: world)
      PaymentEvent(customer: customer).queue(priority: .high, on: world)
    }
    pool.capacity = 2
    #expect(pool.withThreads { $0.count } == 2)
    #expect(pool.drain())
    #expect(pool.statistics.delivered == 20)
    pool = EventPool(
      capacity: 2, balancer: EventPoolKeyedBalancer(by: \SaveEvent.customer), on: world
    ) { index in
      StorageThread(connection: connections[index])
    }
    #expect(pool.queueEvent(SaveEvent()))
    #expect(pool.drain())
  }

  @Test("a shared pool with a scaler, and its stuck threads")
  func sharedAndScaled() {
    let world = EventCentral()
    let pool = EventPool<ThumbnailThread>(
      capacity: 2, balancer: .shared,
      scaler: .dynamic(2...8), on: world)
    pool.withThreads { threads in
      for thread in threads {
        thread.addEventCallback { (event: TemperatureEvent) in print(event) }
      }
    }
    for number in 0..<100 { ImageEvent(number: number).queue(on: world) }
    for thread in pool.stuckThreads(runningFor: .seconds(5)) {
      print("thread \(thread.index) is stuck; \(thread.waiting) events wait for it")
    }
    #expect(pool.drain())
    #expect(pool.eventCount == 0)
  }

  @Test("a balancer and a scaler of the user's own")
  func ownBalancerAndScaler() {
    let world = EventCentral()
    let pool = EventPool<ThumbnailThread>(
      capacity: 4, balancer: UrgentFirstBalancer(), scaler: DoublingScaler(), on: world)
    ImageEvent().queue(priority: .highest, on: world)
    ImageEvent().queue(on: world)
    #expect(pool.drain())
    #expect(pool.statistics.delivered == 2)
  }
}
