// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

/// Each mistake is made in a process of its own.
@Suite("D12: mistakes with scalers and balancers trap")
struct PoolMistakeTests {
  @Test("a scaler whose minimum is below one or above its maximum")
  func bounds() async {
    let none = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPoolDynamicScaler(minimum: 0, maximum: 4)
    }
    expectMessage(none, "and these are 0 and 4: give it both in that order")
    let crossed = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPoolDynamicScaler(minimum: 3, maximum: 2)
    }
    expectMessage(crossed, "and these are 3 and 2: give it both in that order")
  }

  @Test("limits by which a pool would grow and shrink in turn; equal depths are allowed")
  func limits() async {
    let depths = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPoolDynamicScaler(maximum: 2, growDepth: 2, shrinkDepth: 3)
    }
    expectMessage(depths, "A scaler's shrinkDepth is at least 0 and no more than its growDepth")
    let time = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPoolDynamicScaler(maximum: 2, shrinkAfter: .nanoseconds(-1))
    }
    expectMessage(time, "and its times are not negative")
    _ = EventPoolDynamicScaler(maximum: 1, growDepth: 0, growAfter: .zero, shrinkDepth: 0)
  }

  @Test("a scaler whose interval is zero")
  func interval() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = EventPool<EventThread>(
        scaler: EventPoolDynamicScaler(maximum: 2, interval: .zero), on: EventCentral())
    }
    expectMessage(
      result, "and this one is 0.0 seconds: give it another, or nil to be asked by rescale() alone")
  }

  @Test("a balancer that asks about a thread that is not on offer")
  func strangeThread() async {
    struct Asking: EventPoolBalancing {
      func chooseThread(for choice: borrowing EventPoolChoice) -> Int {
        choice.load(of: choice.count)
      }
    }
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let jobs = JobPool(.default, 2, Asking())
      Job().queue(on: jobs.central)
    }
    expectMessage(
      result, "asks about the threads 0 to 1 that it is offered, and asked about 2: count anew")
  }
}
