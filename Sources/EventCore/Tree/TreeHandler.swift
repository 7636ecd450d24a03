// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One handler of a node, as far as the type of its events is of no account; `TypedTreeHandler` adds
/// the closure. A cell retains it, and nobody else.
@usableFromInline
class TreeHandler: @unchecked Sendable {
  // Constant. The closures of the subclass are `Sendable`, or their user has said where they run.

  /// How it comes to run elsewhere; nil on the thread that raises.
  let delivery: TreeDelivery?

  @usableFromInline
  init(_ delivery: TreeDelivery?) {
    self.delivery = delivery
  }

  /// The type of its events, for a dump.
  var eventType: Any.Type { Never.self }
}

/// A handler for events of one type.
///
/// It is made and called inside inlinable generics, where the type is known: calling it needs no box,
/// no cast, no copy and no allocation.
@usableFromInline
final class TypedTreeHandler<E: Eventable>: TreeHandler, @unchecked Sendable {
  // One of the two is the user's, which the modes of the cell tell; not optional, since unwrapping a
  // closure retains it for the call.
  @usableFromInline let plain: (E) -> Void
  @usableFromInline let choosing: (borrowing EventNodeContext<E>) -> EventDecision

  @inlinable
  init(plain: @escaping (E) -> Void) {
    self.plain = plain
    choosing = { _ in .continue }
    super.init(nil)
  }

  @inlinable
  init(
    choosing: @escaping (borrowing EventNodeContext<E>) -> EventDecision,
    delivery: TreeDelivery? = nil
  ) {
    plain = { _ in }
    self.choosing = choosing
    super.init(delivery)
  }

  override var eventType: Any.Type { E.self }
}
