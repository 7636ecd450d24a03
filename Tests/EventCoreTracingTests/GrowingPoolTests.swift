// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  import EventCore
  import EventCoreTestSupport
  import EventCoreTracing
  import InMemoryTracing
  import Testing
  import Tracing

  @Suite("The context of a trace travels to the threads that a pool gets")
  struct GrowingPoolTests {
    struct Small: Eventable { var number = 0 }
    struct Hold: Eventable {}

    /// A context value that tells when it is gone.
    final class Request: Sendable {
      let number: Int
      let gone: Log<Int>
      init(_ number: Int, _ gone: Log<Int>) { (self.number, self.gone) = (number, gone) }
      deinit { gone.append(number) }
    }
    private enum RequestKey: ServiceContextKey { typealias Value = Request }

    @Test(
      "D4: events that wait in a shared mailbox as the pool grows have their contexts, and release them",
      arguments: cores)
    func shared(core: EventCentral.Core) async {
      let tracer = InMemoryTracer()
      for hasSpans in [false, true] {
        let world = EventCentral(core: core, tracing: hasSpans ? .spans(tracer) : .contexts)
        let (numbers, requests, gone) = (Log<Int>(), Log<Int?>(), Log<Int>())
        let (entered, leave) = (Gate(), Gate())
        let pool = EventPool(capacity: 1, balancer: .shared, on: world) { _ in
          let thread = EventThread(on: world)
          thread.addEventCallback { (event: Small) in
            numbers.append(event.number)
            requests.append(ServiceContext.current?[RequestKey.self]?.number)
          }
          thread.addEventCallback { (_: Hold) in
            entered.open()
            leave.pass()
          }
          return thread
        }
        // The first thread is held, so that the second one takes all that came before it.
        Hold().queue(on: world)
        await offThePool { entered.pass() }
        for number in 0..<100 {
          var context = ServiceContext.topLevel
          context[RequestKey.self] = Request(number, gone)
          ServiceContext.withValue(context) { _ = Small(number: number).queue(on: world) }
        }
        pool.capacity = 2
        #expect(await yieldUntil { requests.entries.count == 100 })
        leave.open()
        #expect(await pool.drain())
        #expect(numbers.entries == Array(0..<100))
        #expect(requests.entries == Array(0..<100))
        // A span keeps its context, and the tracer the spans.
        if !hasSpans { #expect(gone.entries.count == 100) }
      }
      #expect(tracer.finishedSpans.count { $0.operationName == "Small" } == 100)
    }
  }
#endif
