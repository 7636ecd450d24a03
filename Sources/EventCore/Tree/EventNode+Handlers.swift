// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventNode {
  /// Has a closure called for every event of a type that passes this node.
  ///
  /// ```swift
  /// node.addHandler { (event: ThemeChanged) in apply(event.theme) }
  /// node.addHandler(.onRaise) { (event: ItemAdded) in count.withLock { $0 += 1 } }
  /// ```
  ///
  /// - Parameters:
  ///   - mode: In which phases it is called, and whether it consumes the event. With several phases
  ///     it is called in each.
  ///   - type: The exact type of event.
  ///   - handler: Runs on the thread that raises. It is retained until it is removed or the node
  ///     ends: a closure over this node keeps the node alive until then.
  /// - Returns: A handle that ends the handler.
  ///
  /// **Threads**: any, also inside a handler. Several threads that raise may call it at once.
  ///
  /// **Order**: behind the handlers that the node has. It hears the events that are raised from now
  /// on.
  ///
  /// **Complexity**: O(1), and a step for each level above which has no handler of the type below it
  /// yet.
  @inlinable
  @discardableResult
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self,
    _ handler: @escaping @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(
      PlainTreeHandler<E>(mode.contains(.consumeEvent) ? .consume : .continue, handler), mode,
      key: eventKey(E.self), makeHandle(mode))
  }

  /// Has a closure called for every event of a type that passes this node, which decides whether
  /// the event continues.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, for: ErrorEvent.self) { context in
  ///   show(context.event) ? .consume : .continue
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - mode: In which phases it is called. With ``CaptureMode/consumeEvent`` the answer is
  ///     ignored: the event is consumed.
  ///   - type: The exact type of event.
  ///   - handler: Runs on the thread that raises; its context has the event, and where that is on
  ///     its way. It is retained as that of the other form.
  /// - Returns: A handle that ends the handler.
  ///
  /// **Threads**, **Order**: as for the other form.
  @inlinable
  @discardableResult
  @_disfavoredOverload
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self,
    _ handler: @escaping @Sendable (_ context: borrowing EventNodeContext<E>) -> EventDecision
  ) -> EventNodeHandle {
    let choosing: (borrowing EventNodeContext<E>) -> EventDecision?
    if mode.contains(.consumeEvent) {
      choosing = { context in
        _ = handler(context)
        return .consume
      }
    } else {
      choosing = handler
    }
    return add(
      ChoosingTreeHandler<E>(choosing), mode, key: eventKey(E.self), makeHandle(mode))
  }

  /// Has a method called for every event of a type that passes this node, for as long as its
  /// object lives.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, owner: self, CartController.onItemAdded)
  /// ```
  ///
  /// - Parameters:
  ///   - mode: As for the other forms. Once the owner is gone, nothing is consumed.
  ///   - owner: The owner of the handler. It is not retained: when it is gone the handler is
  ///     never called again (D9), and ends at the next event. It is kept alive over each call.
  ///   - method: A method of the owner's class, named without its object.
  /// - Returns: A handle that ends the handler.
  ///
  /// **Threads**: the method runs on the thread that raises. What it touches has to be safe there.
  @inlinable
  @discardableResult
  public final func addHandler<Owner: AnyObject, E: Eventable>(
    _ mode: CaptureMode = .onPropagate, owner: Owner,
    _ method: @escaping (_ owner: Owner) -> (_ event: E) -> Void
  ) -> EventNodeHandle {
    let handle = makeHandle(mode)
    let consumes = mode.contains(.consumeEvent)
    weak let weakOwner = owner
    let handler = ChoosingTreeHandler<E> { context in
      guard let owner = weakOwner else {
        handle.remove()
        return nil
      }
      method(owner)(context.event)
      return consumes ? .consume : .continue
    }
    // It consumes by its answer, so that it does not when the owner is gone.
    return add(handler, mode, key: eventKey(E.self), handle)
  }

  /// Ends the handlers of this node for a type that would be called in one of the mode's phases.
  ///
  /// A handler for several phases ends altogether, if the mode names one of them, and one that
  /// consumes the event ends as all others: ``CaptureMode/consumeEvent`` in `mode` is ignored.
  ///
  /// - Returns: How many there were.
  ///
  /// **Threads**: any, also inside a handler. As ``EventNodeHandle/remove()`` for each.
  @inlinable
  @discardableResult
  public final func removeHandlers<E: Eventable>(for type: E.Type, with mode: CaptureMode) -> Int {
    mode.requirePhase()
    return core.removeAll(
      node, key: eventKey(type), phases: mode.intersection(.phases).rawValue)
  }

  /// Ends the handlers of this node for a type.
  ///
  /// - Returns: How many there were.
  ///
  /// **Threads**: any, also inside a handler. As ``EventNodeHandle/remove()`` for each.
  @inlinable
  @discardableResult
  public final func removeHandlers<E: Eventable>(for type: E.Type) -> Int {
    core.removeAll(node, key: eventKey(type), phases: 0)
  }

  /// Ends all handlers of this node.
  ///
  /// - Returns: How many there were.
  ///
  /// **Threads**: any, also inside a handler. As ``EventNodeHandle/remove()`` for each.
  @discardableResult
  public final func removeAllHandlers() -> Int {
    core.removeAll(node, key: 0, phases: 0)
  }

  @usableFromInline
  final func makeHandle(_ mode: CaptureMode, _ delivery: TreeDelivery? = nil) -> EventNodeHandle {
    mode.requirePhase()
    return EventNodeHandle(core, delivery)
  }

  @usableFromInline
  final func add(
    _ handler: TreeHandler, _ mode: CaptureMode, key: UInt, _ handle: EventNodeHandle
  ) -> EventNodeHandle {
    let registration = core.add(
      node, key: key, modes: mode.rawValue | (handler.isChoosing ? TreeModes.choice : 0),
      object: Unmanaged.passRetained(handler).toOpaque())
    handle.register(registration)
    return handle
  }
}
