// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

#if URCU
  import CEventCore
#endif

@Suite("C and Swift share a central")
struct SharedWithCTests {
  struct Small: Eventable, BitwiseCopyable, Equatable { var a = 1, b = 2 }
  // Too large for an envelope: in a box that all receivers share.
  struct Large: Eventable, BitwiseCopyable { var a = (1, 2, 3, 4, 5), b = 6 }

  @Test("the router is there for C on the lock-free core alone")
  func routers() {
    #expect(EventCentral(core: .locking).cRouter == nil)
    #if URCU
      let central = EventCentral(core: .lockFree)
      #expect(central.cRouter != nil && central.cRouter == central.cRouter)
      #expect(central.cRouter != EventCentral(core: .lockFree).cRouter)
      #expect(EventCentral.cKey(of: Small.self) != EventCentral.cKey(of: Large.self))
      #expect(EventCentral.cKey(of: Small.self) != 0)
    #endif
  }

  #if URCU
    @Test("D4 what C dispatches comes to a pump, inline and boxed")
    func fromC() throws {
      let central = EventCentral(core: .lockFree)
      let router = try #require(central.cRouter)
      let pump = EventPump(on: central)
      var small: [Small] = []
      var large = 0
      pump.addEventCallback { (event: Small) in small.append(event) }
      pump.addEventCallback { (event: Large) in large += event.a.4 + event.b }
      func dispatch<E: Eventable & BitwiseCopyable>(_ event: E) {
        var receivers: UInt32 = 0
        let status = withUnsafeBytes(of: event) {
          evc_dispatch_bytes(
            router, EventCentral.cKey(of: E.self), EVC_LANE_QUEUE_NORMAL, $0.baseAddress,
            MemoryLayout<E>.size, MemoryLayout<E>.alignment, &receivers)
        }
        #expect(status == EVC_OK && receivers == 1)
      }
      for i in 0..<100 { dispatch(Small(a: i, b: -i)) }
      for _ in 0..<10 { dispatch(Large()) }
      pump.run()
      #expect(small == (0..<100).map { Small(a: $0, b: -$0) })
      #expect(large == 10 * 11)
      pump.cancel()
      pump.run()
    }

    @Test("D4 what Swift dispatches comes to a mailbox of C, beside a receiver in Swift")
    func toC() throws {
      let central = EventCentral(core: .lockFree)
      let router = try #require(central.cRouter)
      let pump = EventPump(on: central)
      var heard = 0
      pump.addEventCallback { (_: Small) in heard += 1 }
      var mailbox: OpaquePointer?
      #expect(evc_mailbox_create(nil, &mailbox) == EVC_OK)
      var options = evc_subscription_options()
      options.size = MemoryLayout.size(ofValue: options)
      options.deliver = { _, _, _, _ in false }
      var subscription: OpaquePointer?
      #expect(evc_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK)
      let key = EventCentral.cKey(of: Small.self)
      #expect(evc_router_subscribe(router, key, subscription, 0, false) == EVC_OK)
      for i in 0..<100 { #expect(Small(a: i).queue(on: central) == 2) }
      for i in 0..<100 {
        var envelope: OpaquePointer?
        #expect(evc_mailbox_take(mailbox, &envelope) == EVC_OK)
        #expect(evc_envelope_payload(envelope)?.load(as: Small.self) == Small(a: i))
        evc_mailbox_recycle(mailbox, envelope, false)
      }
      pump.run()
      #expect(heard == 100)
      #expect(evc_router_unsubscribe(router, key, subscription) == EVC_OK)
      #expect(Small().queue(on: central) == 1)
      evc_mailbox_release(mailbox)
      pump.cancel()
      pump.run()
    }
  #endif
}
