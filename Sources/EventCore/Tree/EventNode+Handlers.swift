// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension EventNode {
  /// Adds a handler: a closure that is called for every event of a type that passes this node.
  ///
  /// ```swift
  /// node.addHandler { (event: ThemeChanged) in apply(event.theme) }
  /// node.addHandler(.onRaise) { (event: ItemAdded) in count.withLock { $0 += 1 } }
  /// ```
  ///
  /// - Parameters:
  ///   - mode: In which phases the handler is called, and whether it consumes the event. It is called in each
  ///     of several phases.
  ///   - type: The exact type of event.
  ///   - handler: The closure, which runs on the thread that raises. It is retained until it is removed or
  ///     the node ends: a closure that captures this node keeps it alive until it is removed.
  /// - Returns: A handle that removes the handler.
  ///
  /// **Threads**: any, also inside a handler. Several threads that raise may call the handler at once.
  ///
  /// **Order**: after the handlers that the node has already. The handler gets the events that are raised
  /// from now on.
  ///
  /// **Complexity**: O(1), and a step for each level above that has no handler of the type below it yet.
  @inlinable
  @discardableResult
  @available(swift, introduced: 6)
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self,
    _ handler: @escaping @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    addPlain(mode, handler)
  }

  /// The same in Swift 5 mode, where a closure may capture anything, and one that is written in a class of the MainActor
  /// may use its properties. Nothing traps then: it runs on the thread that raises, whichever that is.
  @inlinable
  @discardableResult
  @available(swift, obsoleted: 6)
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self,
    _ handler: @escaping (_ event: E) -> Void
  ) -> EventNodeHandle {
    addPlain(mode, handler)
  }

  @inlinable
  final func addPlain<E: Eventable>(
    _ mode: CaptureMode, _ handler: @escaping (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(
      PlainTreeHandler<E>(mode.contains(.consumeEvent) ? .consume : .continue, handler), mode,
      key: eventKey(E.self), makeHandle(mode))
  }

  /// Adds a handler that decides whether the event continues.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, for: ErrorEvent.self) { context in
  ///   show(context.event) ? .consume : .continue
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - mode: In which phases the handler is called. With ``CaptureMode/consumeEvent`` the event is
  ///     consumed, whatever the handler returns.
  ///   - type: The exact type of event.
  ///   - handler: The closure, which gets the event and its position in the tree.
  /// - Returns: A handle that removes the handler.
  ///
  /// All else is as for the form whose handler gets the event.
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

  /// Adds a method of an object as a handler, for as long as the object lives.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, owner: self, CartController.onItemAdded)
  /// ```
  ///
  /// - Parameters:
  ///   - mode: As for the other forms. When the owner has ended, the handler does not consume events.
  ///   - owner: The object. It is not retained, except during each call: when it has ended, the handler is
  ///     never called again (D9), and is removed at the next event. While the calls of several threads overlap
  ///     without a gap, it cannot end: use the handle's `remove()`. Its `deinit` may run inside the handler, where
  ///     `removeAndWait()` traps.
  ///   - method: A method of the owner's class, named without its object.
  /// - Returns: A handle that removes the handler.
  ///
  /// **Threads**: any. The method runs on the thread that raises, for which the owner is `Sendable`. For a method of an
  /// actor pass a closure, and the actor as `executeOn:`: of a global actor other than the MainActor the compiler would
  /// take a method here, since it does not check the isolation of a function that a function returns.
  @inlinable
  @discardableResult
  @available(swift, introduced: 6)
  public final func addHandler<Owner: AnyObject & Sendable, E: Eventable>(
    _ mode: CaptureMode = .onPropagate, owner: Owner,
    _ method: @escaping @Sendable (_ owner: Owner) -> (_ event: E) -> Void
  ) -> EventNodeHandle {
    addMethod(mode, owner, method)
  }

  /// Adds a method of an object that is not `Sendable`. It belongs to the actor on which it is added, or else to the
  /// main queue or the thread. All else is as for an object that is.
  ///
  /// A function that is on no actor does not know the one that calls it, and a task may go on on another thread: give such
  /// a function an `isolation` of its own, and pass it on.
  ///
  /// - Parameters:
  ///   - mode: As there.
  ///   - owner: The object.
  ///   - isolation: Leave it out.
  ///   - method: A method of the owner's class, named without its object.
  /// - Returns: A handle that removes the handler.
  ///
  /// **Threads**: any. An event that is raised elsewhere, and would call it there, traps. For an actor other than the
  /// MainActor that is Swift's own check, whose message on Linux names neither the class nor this rule.
  @inlinable
  @discardableResult
  @available(swift, introduced: 6)
  public final func addHandler<Owner: AnyObject, E: Eventable>(
    _ mode: CaptureMode = .onPropagate, owner: Owner, isolation: isolated (any Actor)? = #isolation,
    _ method: @escaping (_ owner: Owner) -> (_ event: E) -> Void
  ) -> EventNodeHandle {
    addMethod(mode, owner, of: HandlerPlace(isolation), method)
  }

  /// The same in Swift 5 mode, where classes need not say whether they are `Sendable`. Nothing traps then, and a method of
  /// the MainActor is not refused: the method runs on the thread that raises, whichever that is.
  @inlinable
  @discardableResult
  @available(swift, obsoleted: 6)
  public final func addHandler<Owner: AnyObject, E: Eventable>(
    _ mode: CaptureMode = .onPropagate, owner: Owner,
    _ method: @escaping (_ owner: Owner) -> (_ event: E) -> Void
  ) -> EventNodeHandle {
    addMethod(mode, owner, method)
  }

  @inlinable
  final func addMethod<Owner: AnyObject, E: Eventable>(
    _ mode: CaptureMode, _ owner: Owner, of place: HandlerPlace? = nil,
    _ method: @escaping (_ owner: Owner) -> (_ event: E) -> Void
  ) -> EventNodeHandle {
    let handle = makeHandle(mode, owner: owner)
    let consumes = mode.contains(.consumeEvent)
    weak let weakOwner = owner
    let handler = ChoosingTreeHandler<E> { context in
      guard let owner = weakOwner else {
        handle.remove()
        return nil
      }
      place?.requireHere(Owner.self)
      method(owner)(context.event)
      return consumes ? .consume : .continue
    }
    // It consumes by its decision, so that it does not when the owner has ended.
    return add(handler, mode, key: eventKey(E.self), handle)
  }

  /// Do not call this: a method of the MainActor runs there, by a closure with `executeOn: MainActor.shared`.
  ///
  /// The compiler does not check the isolation of a function that a function returns, and would accept such a method as
  /// one for any thread. With this form it finds the call ambiguous, and refuses it.
  @available(swift, introduced: 6)
  public final func addHandler<Owner: AnyObject & Sendable, E: Eventable>(
    _ mode: CaptureMode = .onPropagate, owner: Owner,
    _ method: @escaping @MainActor @Sendable (_ owner: Owner) -> @MainActor (_ event: E) -> Void
  ) -> EventNodeHandle {
    fatalError(
      """
      A handler of a tree runs on the thread that raises, and a method of the MainActor on its own: add a closure that \
      calls it, with executeOn: MainActor.shared.
      """)
  }

  /// Removes the handlers of this node for a type that are called in at least one of the mode's phases.
  ///
  /// A handler is removed for all its phases. ``CaptureMode/consumeEvent`` in `mode` is ignored; a mode without a phase
  /// traps.
  ///
  /// - Returns: How many handlers were removed.
  ///
  /// **Threads**: any, also inside a handler. As ``EventNodeHandle/remove()`` for each.
  @inlinable
  @discardableResult
  public final func removeHandlers<E: Eventable>(for type: E.Type, with mode: CaptureMode) -> Int {
    mode.requirePhase()
    return core.removeAll(
      node, key: eventKey(type), phases: mode.intersection(.phases).bits)
  }

  /// Removes all handlers of this node for a type, and returns how many. **Threads**: any, as for the form
  /// with a mode.
  @inlinable
  @discardableResult
  public final func removeHandlers<E: Eventable>(for type: E.Type) -> Int {
    core.removeAll(node, key: eventKey(type), phases: 0)
  }

  /// Removes all handlers of this node, and returns how many. **Threads**: any, as for the forms for a type.
  @discardableResult
  public final func removeAllHandlers() -> Int {
    core.removeAll(node, key: 0, phases: 0)
  }

  @usableFromInline
  final func makeHandle(
    _ mode: CaptureMode, _ delivery: TreeDelivery? = nil, owner: AnyObject? = nil
  ) -> EventNodeHandle {
    mode.requirePhase()
    return EventNodeHandle(core, delivery, owner)
  }

  @usableFromInline
  final func add(
    _ handler: TreeHandler, _ mode: CaptureMode, key: UInt, _ handle: EventNodeHandle
  ) -> EventNodeHandle {
    let registration = core.add(
      node, key: key, modes: mode.bits | (handler.isChoosing ? TreeModes.choice : 0),
      object: Unmanaged.passRetained(handler).toOpaque())
    handle.register(registration)
    return handle
  }
}
