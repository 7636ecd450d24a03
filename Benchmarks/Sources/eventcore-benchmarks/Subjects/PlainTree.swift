// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A tree as one writes it by hand: classes, strong children, and for each type a list of closures.
/// One thread, no changes during a raise.
final class PlainNode {
  private class Handlers {}
  private final class TypedHandlers<E>: Handlers {
    var raise: [(E) -> Bool] = []
    var propagate: [(E) -> Bool] = []
  }

  private weak var parent: PlainNode?
  private var children: [PlainNode] = []
  private var handlers: [ObjectIdentifier: Handlers] = [:]

  init(parent: PlainNode?) {
    self.parent = parent
    parent?.children.append(self)
  }

  func attach(to parent: PlainNode) {
    self.parent = parent
    parent.children.append(self)
  }

  func detach() {
    // From the end, as children are mostly released.
    if let parent, let place = parent.children.lastIndex(where: { $0 === self }) { parent.children.remove(at: place) }
    parent = nil
  }

  /// The handler returns whether it consumes the event.
  func addHandler<E>(onRaise: Bool, _ handler: @escaping (E) -> Bool) {
    let typed = list(E.self) ?? TypedHandlers<E>()
    handlers[ObjectIdentifier(E.self)] = typed
    if onRaise { typed.raise.append(handler) } else { typed.propagate.append(handler) }
  }

  func raise<E>(_ event: E) {
    for handler in list(E.self)?.raise ?? [] where handler(event) { return }
    if let parent { parent.raise(event) } else { _ = propagate(event) }
  }

  private func propagate<E>(_ event: E) -> Bool {
    for handler in list(E.self)?.propagate ?? [] where handler(event) { return true }
    for child in children where child.propagate(event) { return true }
    return false
  }

  private func list<E>(_ type: E.Type) -> TypedHandlers<E>? {
    handlers[ObjectIdentifier(type)].map { unsafeDowncast($0, to: TypedHandlers<E>.self) }
  }
}
