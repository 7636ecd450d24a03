// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The part of a node's handler that does not depend on the type of its events; the subclasses add the
/// closure. Only the registration retains it.
///
/// It is made and called inside inlinable generics, where the type is known, so that a call needs no box, no
/// cast, no copy and no allocation. A call reads only the first 40 bytes, since in a large tree each handler
/// has to be fetched from memory.
@usableFromInline
class TreeHandler: @unchecked Sendable {
  // Constant. The closures of the subclasses are `Sendable`, or run only where their context allows it.

  /// Whether it is a `ChoosingTreeHandler`.
  @usableFromInline let isChoosing: Bool

  @usableFromInline
  init(isChoosing: Bool) {
    self.isChoosing = isChoosing
  }

  /// The type of its events, for diagrams.
  var eventType: Any.Type { Never.self }
  /// Hands events over to the place where the handler runs; nil if that is the thread that raises.
  var delivery: TreeDelivery? { nil }
}

/// A handler whose closure gets the event, and whose decision is always the same.
@usableFromInline
final class PlainTreeHandler<E: Eventable>: TreeHandler, @unchecked Sendable {
  // Constant; see `TreeHandler`.
  @usableFromInline let decision: EventDecision
  @usableFromInline let plain: (E) -> Void

  @inlinable
  init(_ decision: EventDecision, _ plain: @escaping (E) -> Void) {
    self.decision = decision
    self.plain = plain
    super.init(isChoosing: false)
  }

  override var eventType: Any.Type { E.self }
}

/// A handler whose closure gets a context and decides.
@usableFromInline
final class ChoosingTreeHandler<E: Eventable>: TreeHandler, @unchecked Sendable {
  // Constant; see `TreeHandler`. `TreeDelivery` is `Sendable`.

  /// Returns nil if nobody was called, since the owner of the handler or the place where it runs has ended.
  @usableFromInline let choosing: (borrowing EventNodeContext<E>) -> EventDecision?
  private let ownDelivery: TreeDelivery?

  @usableFromInline
  init(
    delivery: TreeDelivery? = nil,
    _ choosing: @escaping (borrowing EventNodeContext<E>) -> EventDecision?
  ) {
    self.choosing = choosing
    ownDelivery = delivery
    super.init(isChoosing: true)
  }

  override var eventType: Any.Type { E.self }
  override var delivery: TreeDelivery? { ownDelivery }
}
