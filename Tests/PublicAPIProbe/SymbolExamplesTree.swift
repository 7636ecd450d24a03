// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the nodes' symbols, compiled as a user would.

import Dispatch
import EventCore
import EventCoreTestSupport
import Synchronization
import Testing

/// A namespace, since the examples of other symbols have types of the same names.
enum SymbolsOfTrees {
  enum Theme {
    case light, dark
  }

  struct ThemeChanged: Eventable {
    var theme = Theme.dark
  }

  struct ItemAdded: Eventable {
    var count: Int
  }

  struct LoginEvent: Eventable {
    var user = "Ada"
  }

  struct ErrorEvent: Eventable {
    var isLocal = true
  }

  struct SaveRequested: Eventable {}

  struct Tick: Eventable {
    var number = 1
  }

  // EventNode.addHandler(_:owner:_:).
  final class CartController {
    let node: EventNode
    private(set) var count = 0

    init(_ node: EventNode) { self.node = node }

    func load() {
      node.addHandler(.onRaise, owner: self, CartController.onItemAdded)
    }

    func onItemAdded(_ event: ItemAdded) { count += event.count }
  }

  actor Recorder {
    private let onAppend: @Sendable (Int) -> Void

    init(onAppend: @escaping @Sendable (Int) -> Void) { self.onAppend = onAppend }

    func append(_ event: Tick) { onAppend(event.number) }
  }

  @MainActor
  final class ThemedView {
    private let onApply: () -> Void

    init(onApply: @escaping () -> Void) { self.onApply = onApply }

    func apply(_ theme: Theme) { onApply() }
  }
}

@Suite("The examples of the nodes' symbols compile and run")
struct SymbolExamplesTree {
  typealias CartController = SymbolsOfTrees.CartController
  typealias ErrorEvent = SymbolsOfTrees.ErrorEvent
  typealias ItemAdded = SymbolsOfTrees.ItemAdded
  typealias LoginEvent = SymbolsOfTrees.LoginEvent
  typealias Recorder = SymbolsOfTrees.Recorder
  typealias SaveRequested = SymbolsOfTrees.SaveRequested
  typealias ThemeChanged = SymbolsOfTrees.ThemeChanged
  typealias Tick = SymbolsOfTrees.Tick

  @Test("EventNode")
  func node() {
    let app = EventNode(parent: nil)
    let cart = EventNode(parent: app)
    let badge = EventNode(parent: app)

    badge.addHandler { (event: ItemAdded) in print("\(event.count) in the cart") }
    cart.raise(event: ItemAdded(count: 1))
    #expect(cart.raise(event: ItemAdded(count: 1)).handlerCount == 1)
  }

  @Test("CaptureMode")
  func modes() {
    let greeted = Log<String>()
    @Sendable func greet(_ user: String) { greeted.append("hello \(user)") }
    @Sendable func logIn(_ user: String) { greeted.append("in: \(user)") }
    let node = EventNode(parent: nil)
    node.addHandler(.onRaise) { (event: LoginEvent) in greet(event.user) }
    node.addHandler([.onRaise, .consumeEvent]) { (event: LoginEvent) in logIn(event.user) }
    #expect(node.raise(event: LoginEvent()).isConsumed)
    #expect(greeted.entries == ["hello Ada", "in: Ada"])
  }

  @Test("addHandler, with a closure")
  func closures() {
    let applied = Log<SymbolsOfTrees.Theme>()
    @Sendable func apply(_ theme: SymbolsOfTrees.Theme) { applied.append(theme) }
    let count = Mutex(0)
    let node = EventNode(parent: nil)
    node.addHandler { (event: ThemeChanged) in apply(event.theme) }
    node.addHandler(.onRaise) { (event: ItemAdded) in count.withLock { $0 += 1 } }
    node.raise(event: ThemeChanged())
    node.raise(event: ItemAdded(count: 1))
    #expect(applied.entries == [.dark])
    #expect(count.withLock { $0 } == 1)
  }

  @Test("addHandler, with a closure that decides")
  func decisions() {
    let shown = Log<Bool>()
    @Sendable func show(_ event: ErrorEvent) -> Bool {
      shown.append(event.isLocal)
      return event.isLocal
    }
    let node = EventNode(parent: nil)
    node.addHandler(.onRaise, for: ErrorEvent.self) { context in
      show(context.event) ? .consume : .continue
    }
    #expect(node.raise(event: ErrorEvent()).isConsumed)
    #expect(shown.entries == [true])
  }

  @Test("EventNodeContext")
  func context() {
    let root = EventNode(parent: nil)
    let node = EventNode(parent: root)
    node.addHandler(.onRaise, for: ErrorEvent.self) { context in
      context.depth > 0 && context.event.isLocal ? .consume : .continue
    }
    #expect(node.raise(event: ErrorEvent()).isConsumed)
    #expect(!node.raise(event: ErrorEvent(isLocal: false)).isConsumed)
  }

  @Test("addHandler, with a method of an owner")
  func owner() {
    let cart = CartController(EventNode(parent: nil))
    cart.load()
    cart.node.raise(event: ItemAdded(count: 2))
    #expect(cart.count == 2)
  }

  @Test("addHandler, on a dispatch queue")
  func dispatchQueue() {
    let saved = Log<Bool>()
    @Sendable func save(_ event: SaveRequested) { saved.append(true) }
    let disk = DispatchQueue(label: "disk")
    let node = EventNode(parent: nil)
    node.addHandler(.onRaise, executeOn: .dispatchQueue(disk)) { (event: SaveRequested) in
      save(event)
    }
    node.raise(event: SaveRequested())
    #expect(saved.entries(atLeast: 1) == [true])
  }

  @Test("addHandler, on the MainActor")
  @MainActor
  func mainActor() async {
    let node = EventNode(parent: nil)
    await withCheckedContinuation { continuation in
      let view = SymbolsOfTrees.ThemedView { continuation.resume() }
      node.addHandler(executeOn: MainActor.shared) { (event: ThemeChanged) in view.apply(event.theme) }
      node.raise(event: ThemeChanged())
    }
  }

  @Test("addHandler, on an actor")
  func actor() async {
    let (numbers, continuation) = AsyncStream.makeStream(of: Int.self)
    let recorder = Recorder { continuation.yield($0) }
    let node = EventNode(parent: nil)
    node.addHandler(.onRaise, executeOn: recorder) { (recorder: isolated Recorder, event: Tick) in
      recorder.append(event)
    }
    node.raise(event: Tick(number: 7))
    #expect(await numbers.first { _ in true } == 7)
    withExtendedLifetime(recorder) {}
  }

  @Test("EventNode.diagram()")
  func diagram() {
    let app = EventNode(name: "app")
    let cart = EventNode(parent: app, name: "cart")
    let button = EventNode(parent: cart, name: "button")
    let badge = EventNode(parent: app, name: "badge")
    app.addHandler { (event: ThemeChanged) in }
    button.addHandler([.onRaise, .consumeEvent]) { (event: ItemAdded) in }
    badge.addHandler(executeOn: .listenerThread) { (event: ItemAdded) in }
    #expect(
      cart.diagram() == """
        app  [ThemeChanged: onPropagate]
        ├─ cart  ◀ here
        │  └─ button  [ItemAdded: onRaise, consumeEvent]
        └─ badge  [ItemAdded: onPropagate @ listenerThread]

        """)
  }
}
