// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of "Trees" and of the nodes' symbols, compiled as a user would.

import EventCore
import EventCoreTestSupport
import Testing

// "Nodes, events, handlers".
struct ItemAdded: Eventable {
  var count: Int
}

// "Handlers that run elsewhere".
private func save(_ event: ItemAdded) {}

final class CartScreen: Sendable {
  let node: EventNode

  init(_ parent: EventNode) {
    node = EventNode(parent: parent)
    node.addHandler(.onRaise, owner: self, CartScreen.onItemAdded)
  }

  func onItemAdded(_ event: ItemAdded) {}
}

@MainActor
final class Till {
  let node: EventNode
  var count = 0

  init(_ parent: EventNode) {
    node = EventNode(parent: parent, name: "till")
    node.addHandler(.onRaise, executeOn: MainActor.shared) { [weak self] (event: ItemAdded) in
      self?.count += event.count
    }
    node.addHandler(.onRaise, for: ItemAdded.self) { [weak self] context in
      let event = context.event
      guard let self else { return .continue }
      return MainActor.assumeIsolated { self.accepts(event) ? .continue : .consume }
    }
  }

  func accepts(_ event: ItemAdded) -> Bool { count + event.count < 100 }
}

@Suite("The trees' examples compile and run")
struct TreeExamples {
  @Test("a method of the MainActor decides")
  @MainActor func decides() {
    let till = Till(EventNode(name: "app"))
    #expect(till.node.raise(event: ItemAdded(count: 100)).consumer == till.node.id)
    #expect(!till.node.raise(event: ItemAdded(count: 1)).isConsumed)
  }

  @Test("as printed")
  func asPrinted() {
    let printed = Log<String>()
    func print(_ text: String) { printed.append(text) }
    let app = EventNode(name: "app")
    let cart = EventNode(parent: app, name: "cart")
    let badge = EventNode(parent: app, name: "badge")

    badge.addHandler { (event: ItemAdded) in
      printed.append("\(event.count) in the cart")
    }
    cart.raise(event: ItemAdded(count: 1))
    #expect(printed.take() == ["1 in the cart"])

    cart.raise(event: ItemAdded(count: 1), scope: .bubbling)
    cart.propagate(event: ItemAdded(count: 1))
    #expect(printed.entries.isEmpty)

    let choice = cart.addHandler(.onRaise, for: ItemAdded.self) { context in
      context.event.count > 99 ? .consume : .continue
    }
    #expect(cart.raise(event: ItemAdded(count: 100)).isConsumed)
    choice.remove()

    cart.addHandler(.onRaise, executeOn: .listenerThread) { (event: ItemAdded) in
      save(event)
    }
    _ = CartScreen(cart)
    print(cart.diagram())
    #expect(
      printed.entries == [
        """
        app
        ├─ cart  [ItemAdded: onRaise @ listenerThread]  ◀ here
        └─ badge  [ItemAdded: onPropagate]

        """
      ])
    #expect(cart.path == "app/cart")
  }
}
