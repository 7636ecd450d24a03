// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Synchronization

/// The handlers of a receiver for the common case: an event of `generation` is for all of them, none of
/// them judges events, and so only two checks come before each call: whether a handler has ended, and whether its
/// requester is held.
///
/// It takes about half of the instructions of `Delivery.call`.
@usableFromInline
struct DirectHandlers {
  /// The `HandlerList.Slot`s. They stay valid for all events of a batch that are delivered directly one after the other:
  /// the list changes in `Receiver.deliverAny`, in `Consumer.control` and at the end, of which none runs between these.
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

  /// Whether there is one handler.
  @inlinable
  @inline(__always)
  var isForOne: Bool { first + DirectHandlers.stride == end }

  /// For an assertion.
  @inlinable
  func isSame(as other: Self) -> Bool {
    first == other.first && end == other.end && generation == other.generation
  }

  /// Announces the call of a slot's handler, and returns it; nil if it may not be called without further checks. The
  /// consumer's thread only, as for the rest.
  @inlinable
  @inline(__always)
  func handler<E: Eventable>(
    at slot: UnsafeRawPointer, for type: E.Type, _ receiver: Receiver
  ) -> Unmanaged<TypedHandler<E>>? {
    receiver.consumer._withUnsafeGuaranteedRef { consumer in
      consumer.calls.willCall(at: slot.load(fromByteOffset: DirectHandlers.state, as: UInt.self))
      // After the announcement, as `Receiver.mayHaveEnded` says.
      guard !receiver.mayHaveEnded else { return nil }
      // The type is given here, since a cast inside would retain the closure for the call.
      let handler = slot.load(as: Unmanaged<TypedHandler<E>>.self)
      return handler._withUnsafeGuaranteedRef { $0.mayCallPlain(by: consumer.address) } ? handler : nil
    }
  }

  /// The same for the only handler; nil if there are more.
  @inlinable
  @inline(__always)
  func only<E: Eventable>(for type: E.Type, _ receiver: Receiver) -> Unmanaged<TypedHandler<E>>? {
    isForOne ? handler(at: first, for: type, receiver) : nil
  }

  /// Calls the handler that `only` has returned.
  @inlinable
  @inline(__always)
  func call<E: Eventable>(_ handler: Unmanaged<TypedHandler<E>>, _ event: E, _ receiver: Receiver) {
    handler._withUnsafeGuaranteedRef { $0.plain(event) }
    receiver.consumer._withUnsafeGuaranteedRef { $0.didCall(true, counts) }
  }

  /// Calls all handlers for an event of `generation`.
  @inlinable
  @inline(__always)
  func call<E: Eventable>(_ event: E, _ receiver: Receiver, _ envelope: UnsafeRawPointer) {
    var next = first
    repeat {
      guard let handler = handler(at: next, for: E.self, receiver) else {
        return callRest(from: next, event, receiver, envelope)
      }
      handler._withUnsafeGuaranteedRef { $0.plain(event) }
      next += DirectHandlers.stride
    } while next != end
    receiver.consumer._withUnsafeGuaranteedRef { $0.didCall(true, counts) }
  }

  /// Calls the remaining handlers from one on that has ended, or whose requester is not held yet or is gone, and checks
  /// each of them.
  @inlinable
  @inline(never)
  func callRest<E: Eventable>(
    from next: UnsafeRawPointer, _ event: E, _ receiver: Receiver, _ envelope: UnsafeRawPointer
  ) {
    let called = delivery(from: next, receiver, envelope).call(event)
    receiver.consumer._withUnsafeGuaranteedRef { $0.didCall(called || next != first, counts) }
  }

  @usableFromInline
  func delivery(
    from next: UnsafeRawPointer, _ receiver: Receiver, _ envelope: UnsafeRawPointer
  ) -> Delivery {
    Delivery(
      receiver: Unmanaged.passUnretained(receiver), consumer: receiver.consumer, handlers: next,
      end: end, generation: generation,
      lane: envelope.load(fromByteOffset: EnvelopeLayout.lane, as: UInt8.self), reachesAll: true,
      time: envelope.load(fromByteOffset: EnvelopeLayout.time, as: UInt64.self), counts: counts)
  }
}
