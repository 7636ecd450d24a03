// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The part of a node's handler that does not depend on the type of its events; the subclasses add the
/// closure. A registration retains it, and nobody else.
///
/// It is made and called inside inlinable generics, where the type is known: calling it needs no
/// box, no cast, no copy and no allocation. What a call reads of it lies in its first 40 bytes: of
/// a large tree each handler comes from memory.
@usableFromInline
class TreeHandler: @unchecked Sendable {
  // Constant. The closures of the subclasses are `Sendable`, or their user has said where they run.

  /// Whether it is a `ChoosingTreeHandler`.
  @usableFromInline let isChoosing: Bool

  @usableFromInline
  init(isChoosing: Bool) {
    self.isChoosing = isChoosing
  }

  /// The type of its events, for a dump.
  var eventType: Any.Type { Never.self }
  /// How it comes to run elsewhere; nil on the thread that raises.
  var delivery: TreeDelivery? { nil }
}

/// A handler that is given the event, and always makes the same of it.
@usableFromInline
final class PlainTreeHandler<E: Eventable>: TreeHandler, @unchecked Sendable {
  // Constant. The closure is `Sendable`, or its user has said where it runs: called on the raising
  // thread.
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

/// A handler that is given a context and decides.
@usableFromInline
final class ChoosingTreeHandler<E: Eventable>: TreeHandler, @unchecked Sendable {
  // Constant. The closure as in `PlainTreeHandler`; `TreeDelivery` is `Sendable`.

  /// Nil: whom the handler belongs to, or where it runs, has ended, and nobody was called.
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
