// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreTestSupport
import Testing

@Suite("Trees: a handler's context while nodes end and move")
struct TreeContextTests {
  /// What a handler's context tells of its place.
  private struct Place: Equatable {
    var node: String?
    var previous: String?
    var depth: Int
    var path: String

    init(_ context: borrowing EventNodeContext<Note>) {
      node = context.node?.name
      previous = context.previous?.name
      depth = context.depth
      path = context.path
    }

    init(_ node: String?, from previous: String?, _ depth: Int, _ path: String) {
      (self.node, self.previous, self.depth, self.path) = (node, previous, depth, path)
    }
  }

  /// References that a test drops from a handler.
  private final class Holder: @unchecked Sendable {
    // The gates of the tests let one thread at a time use it.
    var node: EventNode?
    var others: [EventNode] = []
  }

  @Test(
    "D9: a node that ends while its handler runs has no place, whoever reuses its memory",
    arguments: cores, [false, true])
  func endsInItsHandler(core: EventCentral.Core, isMoved: Bool) {
    let root = EventNode(name: "root", core: core)
    let other = EventNode(parent: root, name: "other")
    let holder = Holder()
    holder.node = EventNode(parent: isMoved ? other : root, name: "ending")
    // After a move the link to the parent is a block of its own, which ends with the node.
    if isMoved { holder.node!.attach(to: root) }
    let places = Log<Place>()
    holder.node!.addHandler(for: Note.self) { context in
      places.append(Place(context))
      holder.node = nil
      holder.others = (0..<256).map { EventNode(parent: other, name: "stranger \($0)") }
      places.append(Place(context))
      return .continue
    }
    root.raise(event: Note())
    #expect(
      places.entries == [
        Place("ending", from: "root", 1, "root/ending"), Place(nil, from: nil, 0, ""),
      ])
  }

  @Test("D9: a node has no place once another thread ends it during its handler", arguments: cores)
  func endsElsewhere(core: EventCentral.Core) {
    let root = EventNode(name: "root", core: core)
    let middle = Holder()
    let leaf = Holder()
    middle.node = EventNode(parent: root, name: "middle")
    leaf.node = EventNode(parent: middle.node!, name: "leaf")
    middle.node = nil
    let (entered, ended) = (Gate(), Gate())
    let places = Log<Place>()
    leaf.node!.addHandler(for: Note.self) { context in
      entered.open()
      ended.pass()
      places.append(Place(context))
      return .continue
    }
    onThreads(2) { index in
      guard index == 1 else {
        root.raise(event: Note())
        return
      }
      entered.pass()
      // Drops the last reference to the leaf, and with it the last one to the middle node.
      leaf.node = nil
      middle.others = (0..<256).map { EventNode(parent: root, name: "stranger \($0)") }
      ended.open()
    }
    #expect(places.entries == [Place(nil, from: nil, 0, "")])
    #expect(root.children.count == 256)
  }

  @Test("at the node that propagates, an event has no previous node", arguments: cores)
  func previousOfPropagation(core: EventCentral.Core) {
    let app = EventNode(name: "app", core: core)
    let cart = EventNode(parent: app, name: "cart")
    let button = EventNode(parent: cart, name: "button")
    let places = Log<Place>()
    for node in [app, cart, button] {
      node.addHandler(for: Note.self) { context in
        places.append(Place(context))
        return .continue
      }
    }
    cart.propagate(event: Note())
    #expect(
      places.take() == [
        Place("cart", from: nil, 1, "app/cart"),
        Place("button", from: "cart", 2, "app/cart/button"),
      ])
  }

  @Test("for an event on its way a root that a handler attaches elsewhere remains the top", arguments: cores)
  func previousOfAnAttachedRoot(core: EventCentral.Core) {
    let world = EventNode(name: "world", core: core)
    let app = EventNode(name: "app", core: core)
    let button = EventNode(parent: app, name: "button")
    let places = Log<Place>()
    for node in [app, button] {
      node.addHandler([.onRaise, .onPropagate], for: Note.self) { [unowned app] context in
        if app.parent == nil { app.attach(to: world) }
        places.append(Place(context))
        return .continue
      }
    }
    button.raise(event: Note())
    #expect(
      places.take() == [
        Place("button", from: nil, 2, "world/app/button"),
        Place("app", from: "button", 1, "world/app"),
        Place("app", from: nil, 1, "world/app"),
        Place("button", from: "app", 2, "world/app/button"),
      ])
  }

  /// A node that logs its surroundings as it ends.
  private final class Leaving: EventNode, @unchecked Sendable {
    let log: Log<String>

    init(parent: EventNode?, log: Log<String>, core: EventCentral.Core) {
      self.log = log
      super.init(parent: parent, name: "leaving", core: core)
    }

    deinit {
      log.append(root.name ?? "?")
      log.append(path)
      log.append("\(depth)")
      log.append(parent?.name ?? "-")
      log.append(diagram())
    }
  }

  @Test("D9: the deinit of a subclass finds its node still at its place", arguments: cores)
  func looksAroundInDeinit(core: EventCentral.Core) {
    let log = Log<String>()
    _ = Leaving(parent: nil, log: log, core: core)
    #expect(log.take() == ["leaving", "leaving", "0", "-", "leaving  ◀ here\n"])
    let app = EventNode(name: "app", core: core)
    _ = Leaving(parent: app, log: log, core: core)
    #expect(log.take() == ["app", "app/leaving", "1", "app", "app\n└─ leaving  ◀ here\n"])
    #expect(app.children.isEmpty)
  }
}
