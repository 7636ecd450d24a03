// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Testing

@Suite("Static members that can be written behind a dot")
struct StaticMembers {
  struct Order: Eventable { var customer = 0 }

  @Test("balancers and scalers of a pool")
  func pools() async {
    let central = EventCentral()
    let balancers: [any EventPoolBalancing] = [
      .roundRobin, .lowestLoad, .shared, .byKey { (order: Order) in order.customer },
    ]
    #expect(
      balancers.map { "\(type(of: $0))" } == [
        "EventPoolRoundRobinBalancer", "EventPoolLowestLoadBalancer", "EventPoolSharedBalancer",
        "EventPoolKeyedBalancer",
      ])
    let pool = EventPool<EventThread>(
      capacity: 2, balancer: .byKey { (order: Order) in order.customer }, scaler: .dynamic(2...8),
      on: central) { _ in EventThread(on: central) }
    #expect(pool.capacity == 2)
    #expect(EventPool<EventThread>(balancer: .lowestLoad).capacity == 1)
    #expect(await pool.drain())
  }

  @Test("the main queue as a place, and an age as an interest; EventCore is all that is imported")
  func listeners() async {
    let central = EventCentral()
    let handle = Order.addListener(
      nil, executeOn: .main, interestedIn: [.latestOnly, .youngerThan(.seconds(1))], on: central
    ) { (order: Order, priority: EventPriority, dispatchTime: DispatchTime) in }
    #expect("\(handle.executesOn)" == "mainQueue")
    Order().scheduleQueue(at: .now() + .seconds(3600), on: central).cancel()
    await handle.removed()
  }
}
