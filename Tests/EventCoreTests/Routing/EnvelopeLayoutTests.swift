// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if URCU
  import CEventCore
  import EventCoreTestSupport
  import Testing

  @testable import EventCore

  @Suite("Swift reads the envelopes of the C core")
  struct EnvelopeLayoutTests {
    @Test("the fields that Swift fills and reads in a dispatch lie where C has them")
    func dispatchState() {
      #expect(MemoryLayout<DispatchState>.size == MemoryLayout<evc_dispatch>.size)
      #expect(MemoryLayout<DispatchState>.alignment == MemoryLayout<evc_dispatch>.alignment)
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.receivers)
          == MemoryLayout<evc_dispatch>.offset(of: \.receivers))
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.payloads)
          == MemoryLayout<evc_dispatch>.offset(of: \.payloads))
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.shared)
          == MemoryLayout<evc_dispatch>.offset(of: \.shared))
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.snapshot)
          == MemoryLayout<evc_dispatch>.offset(of: \.snapshot))
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.needs)
          == MemoryLayout<evc_dispatch>.offset(of: \.needs))
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.needing)
          == MemoryLayout<evc_dispatch>.offset(of: \.needing))
      #expect(
        MemoryLayout<DispatchState>.offset(of: \.array)
          == MemoryLayout<evc_dispatch>.offset(of: \.array))
      #expect(maximumBatch == Int(EVC_DISPATCH_MAX))
    }

    @Test(
      "lane, time, generation and payload of an envelope lie where C has them, inline and boxed",
      arguments: [0, 24, 32, 33, 200])
    func envelope(size: Int) throws {
      var mailbox: OpaquePointer?
      #expect(evc_mailbox_create(nil, &mailbox) == EVC_OK)
      defer { evc_mailbox_release(mailbox) }
      var options = evc_subscription_options()
      options.size = MemoryLayout.size(ofValue: options)
      options.deliver = { _, _, _, _ in false }
      var subscription: OpaquePointer?
      #expect(evc_mailbox_add_subscription(mailbox, &options, &subscription) == EVC_OK)
      var made: OpaquePointer?
      #expect(evc_envelope_create(subscription, EVC_LANE_QUEUE_LOW, size, 8, &made) == EVC_OK)
      evc_envelope_set_time(made, 0x0123_4567_89AB_CDEF)
      let envelope = try UnsafeMutableRawPointer(#require(made))
      #expect(
        envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self) == 0x0123_4567_89AB_CDEF
      )
      #expect(
        envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self)
          == Lane(.queue, .low).index)
      #expect(envelope.load(fromByteOffset: EnvelopeLayout.generation, as: UInt32.self) == 0)
      #expect(envelopePayload(envelope) == evc_envelope_payload(made))
      evc_envelope_release(made, true)
    }

    @Test("the ten lanes have the numbers of enum evc_lane")
    func lanes() {
      for (index, lane) in TestLane.all.enumerated() {
        #expect(Lane(lane.method, lane.priority).index == UInt8(index))
        #expect(Lane(index: UInt8(index)).priority == lane.priority)
        #expect(Lane(index: UInt8(index)).method == lane.method)
      }
    }
  }
#endif
