// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The handlers of a receiver for the common case: an event of `generation` is for all of them, none of
/// them judges events, and so the only check before each call is whether a handler has ended.
///
/// It takes about half of the instructions of `Delivery.call`.
@usableFromInline
struct DirectHandlers {
  /// The `HandlerList.Slot`s. They stay valid during an event, since the list changes between events only.
  @usableFromInline let first: UnsafeRawPointer
  @usableFromInline let end: UnsafeRawPointer
  /// The generation of the events that reach all handlers; `.max`, which no event has, in all other cases.
  @usableFromInline let generation: UInt32
  /// Where they are counted.
  @usableFromInline let counts: HandledCounts

  /// The size of a slot in bytes, and the offset of the state in it; a test compares them with the layout.
  @inlinable static var stride: Int { 16 }
  @inlinable static var state: Int { 8 }

  init(first: UnsafeRawPointer, end: UnsafeRawPointer, generation: UInt32, _ counts: HandledCounts) {
    self.first = first
    self.end = end
    self.generation = generation
    self.counts = counts
  }

  /// For no events.
  static func none(_ counts: HandledCounts) -> Self {
    let nowhere = UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    return Self(first: nowhere, end: nowhere, generation: .max, counts)
  }

  /// Calls the handlers for an event of `generation`. The consumer's thread only.
  @inlinable
  @inline(__always)
  func call<E: Eventable>(
    _ event: E, _ receiver: Receiver, _ envelope: UnsafeRawPointer
  ) {
    receiver.consumer._withUnsafeGuaranteedRef { consumer in
      var next = first
      var called = false
      repeat {
        guard mayCall(next, receiver, consumer) else {
          callRest(from: next, event, receiver, envelope, called: called)
          return
        }
        // The type is given here, since a cast inside would retain the closure for the call.
        next.load(as: Unmanaged<TypedHandler<E>>.self)._withUnsafeGuaranteedRef { handler in
          if handler.mayCallPlain(by: consumer.address) {
            handler.plain(event)
            called = true
          } else {
            called = callGeneral(handler, event, receiver, envelope) || called
          }
        }
        next += DirectHandlers.stride
      } while next != end
      consumer.didCallDirectly(called, counts)
    }
  }

  /// Announces the call of a slot's handler. False if any handler of the receiver has ended.
  @inlinable
  @inline(__always)
  func mayCall(_ slot: UnsafeRawPointer, _ receiver: Receiver, _ consumer: Consumer) -> Bool {
    consumer.calls.willCall(at: slot.load(fromByteOffset: DirectHandlers.state, as: UInt.self))
    // After the announcement, as `Receiver.mayHaveEnded` says.
    return !receiver.mayHaveEnded
  }

  /// Calls the remaining handlers after one has ended, and checks each of them.
  @inlinable
  @inline(never)
  func callRest<E: Eventable>(
    from next: UnsafeRawPointer, _ event: E, _ receiver: Receiver, _ envelope: UnsafeRawPointer,
    called: Bool
  ) {
    let calledNow = delivery(from: next, receiver, envelope).call(event)
    receiver.consumer._withUnsafeGuaranteedRef { $0.didCallDirectly(called || calledNow, counts) }
  }

  /// Calls a handler whose requester is not held yet, or is gone.
  @inlinable
  @inline(never)
  func callGeneral<E: Eventable>(
    _ handler: TypedHandler<E>, _ event: E, _ receiver: Receiver, _ envelope: UnsafeRawPointer
  ) -> Bool {
    receiver.consumer._withUnsafeGuaranteedRef { consumer in
      delivery(from: first, receiver, envelope).callGeneral(handler, event, consumer)
    }
  }

  @usableFromInline
  func delivery(
    from next: UnsafeRawPointer, _ receiver: Receiver, _ envelope: UnsafeRawPointer
  ) -> Delivery {
    Delivery(
      receiver: Unmanaged.passUnretained(receiver), consumer: receiver.consumer, handlers: next,
      end: end, generation: generation,
      lane: envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self), reachesAll: true,
      time: envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self))
  }
}
