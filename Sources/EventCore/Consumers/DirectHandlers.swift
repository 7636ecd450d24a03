// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The handlers of a receiver, if nothing has to be found out before they are called but that they
/// are alive: every one of them takes each event as it is, and an event of this generation is for
/// all.
///
/// That is how nearly all events meet their handlers, so it is all that is read for them: about
/// half of the instructions of `Delivery.call`.
@usableFromInline
struct DirectHandlers {
  /// `HandlerList.Slot`s. Unmanaged: the list changes between two events only, and this with it.
  @usableFromInline let first: UnsafeRawPointer
  @usableFromInline let end: UnsafeRawPointer
  /// Of the events that reach all of them; `.max`, which no event has, if they are called in
  /// another way.
  @usableFromInline let generation: UInt32

  /// The bytes from one slot to the next, and to the state in each; a test compares them.
  @inlinable static var stride: Int { 16 }
  @inlinable static var state: Int { 8 }

  init() {
    let nowhere = UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    self.init(first: nowhere, end: nowhere, generation: .max)
  }

  init(first: UnsafeRawPointer, end: UnsafeRawPointer, generation: UInt32) {
    self.first = first
    self.end = end
    self.generation = generation
  }

  /// Calls them for an event of their generation. The consumer's thread only.
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
        // Not a cast inside: that would retain the closure for the call.
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
      consumer.didCallDirectly(called)
    }
  }

  /// Announces the call of the handler in a slot. False if a handler has ended, perhaps this one.
  @inlinable
  @inline(__always)
  func mayCall(_ slot: UnsafeRawPointer, _ receiver: Receiver, _ consumer: Consumer) -> Bool {
    consumer.calls.willCall(at: slot.load(fromByteOffset: DirectHandlers.state, as: UInt.self))
    // After it: see `Receiver.mayHaveEnded`.
    return !receiver.mayHaveEnded
  }

  /// A handler has ended, perhaps one that is still to be called: from here on each is looked at.
  @inlinable
  @inline(never)
  func callRest<E: Eventable>(
    from next: UnsafeRawPointer, _ event: E, _ receiver: Receiver, _ envelope: UnsafeRawPointer,
    called: Bool
  ) {
    let calledNow = delivery(from: next, receiver, envelope).call(event)
    receiver.consumer._withUnsafeGuaranteedRef { $0.didCallDirectly(called || calledNow) }
  }

  /// The requester of the handler is not held, or gone.
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
