// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventDrivenSwift
import Testing

// They run one after the other, since they share an event type, and so its receivers on the shared central.
#if swift(>=6)
  @Suite("EventDrivenSwift's pools, in Swift 6 mode", .serialized)
#else
  @Suite("EventDrivenSwift's pools, in Swift 5 mode", .serialized)
#endif
struct SeedPoolTests {
  @Test("a pool of five takes turns: each thread gets its share, and the next event finds its thread")
  func roundRobin() {
    for make in [
      { SeedPool.ByDefault().temperatureProcessorPool },
      { SeedPool.RoundRobin().temperatureProcessorPool },
    ] {
      let pool = make()
      for count in 1...16 {
        // The pool is one receiver.
        #expect(SeedPool.TemperatureEvent(temperatureInCelsius: Float(count)).queue() == 1)
      }
      let threads = pool.withThreads { $0 }
      #expect(threads.count == 5)
      #expect(pool.drain())
      #expect(threads.map { $0.statistics.delivered }.sorted() == [3, 3, 3, 3, 4])
    }
  }

  @Test("a pool that balances by load loses and doubles nothing")
  func lowestLoad() {
    let pool = SeedPool.LowestLoad().temperatureProcessorPool
    for count in 1...16 {
      #expect(SeedPool.TemperatureEvent(temperatureInCelsius: Float(count)).queue() == 1)
    }
    #expect(pool.drain())
    #expect(pool.statistics.delivered == 16)
  }
}
