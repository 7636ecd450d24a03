// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

// Handlers that run elsewhere than on the thread that raises.

extension EventNode {
  /// Has a closure called for every event of a type that passes this node, in a place that you name
  /// instead of on the thread that raises.
  ///
  /// The event is handed over as it passes, and continues at once, so the handler cannot answer.
  /// With ``CaptureMode/consumeEvent`` the event is consumed when it is handed over, whatever the
  /// handler does with it later; if the place has ended, the event is not consumed.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, executeOn: .dispatchQueue(disk)) { (event: SaveRequested) in
  ///   save(event)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - mode: In which phases it is handed over, and whether that consumes the event.
  ///   - type: The exact type of event.
  ///   - executeOn: Where the handler runs; `.requesterThread` is where it is added.
  ///   - central: Whose listener thread it is, and with which listeners a place is shared. Not
  ///     retained: the place, and with it the handler, ends with the central.
  ///   - isolation: Leave it out. Added on an actor, `.requesterThread` is that actor.
  ///   - handler: Retained until it is removed, or the node or the place ends.
  /// - Returns: A handle that ends the handler. What was handed over before and has not begun is
  ///   dropped with it.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Order**: the calls of one thread's events keep their order, among all handlers in the same
  /// place.
  ///
  /// **Complexity**: a raise pays one dispatch and one allocation for each hand-over.
  @inlinable
  @discardableResult
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self, executeOn: ExecuteEventOn,
    of central: EventCentral = .shared, isolation: isolated (any Actor)? = #isolation,
    _ handler: @escaping @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(mode, makeDelivery(executeOn, central, isolation), handler)
  }

  /// Has a closure called on an event thread for every event of a type that passes this node.
  ///
  /// It runs there as one of the thread's events of normal priority. The thread is not retained: the
  /// handler ends with it. All else is as for the form with ``ExecuteEventOn``.
  @inlinable
  @discardableResult
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self, executeOn thread: EventThread,
    _ handler: @escaping @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(mode, makeDelivery(thread), handler)
  }

  /// Has a closure called on the MainActor for every event of a type that passes this node.
  ///
  /// ```swift
  /// node.addHandler(executeOn: MainActor.shared) { (event: ThemeChanged) in view.apply(event.theme) }
  /// ```
  ///
  /// The handler runs on the main queue, also if the thread that raises is the main thread: then after
  /// what waits there. Somebody has to serve it. All else is as for the form with ``ExecuteEventOn``.
  @inlinable
  @discardableResult
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self, executeOn actor: MainActor,
    of central: EventCentral = .shared,
    _ handler: @escaping @MainActor @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(mode, makeDelivery(.dispatchQueue(.main), central, nil)) { (event: E) in
      MainActor.assumeIsolated { handler(event) }
    }
  }

  /// Has a closure called on an actor for every event of a type that passes this node.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, executeOn: recorder) { (recorder: isolated Recorder, event: Tick) in
  ///   recorder.append(event)
  /// }
  /// ```
  ///
  /// The handler is given the actor and the event. The actor is not retained: the handler ends with it
  /// (D9). All else is as for the form with ``ExecuteEventOn``.
  @inlinable
  @discardableResult
  public final func addHandler<Owner: Actor, E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self, executeOn actor: Owner,
    of central: EventCentral = .shared,
    _ handler: @escaping @Sendable (_ actor: isolated Owner, _ event: E) -> Void
  ) -> EventNodeHandle {
    weak let weakActor = actor
    return add(mode, makeDelivery(.requesterThread, central, actor)) { (event: E) in
      weakActor?.assumeIsolated { handler($0, event) }
    }
  }

  @inlinable
  final func add<E: Eventable>(
    _ mode: CaptureMode, _ target: TreeTarget, _ body: @escaping @Sendable (E) -> Void
  ) -> EventNodeHandle {
    let handle = makeHandle(mode, target.delivery)
    let consumes = mode.contains(.consumeEvent)
    let handler = ChoosingTreeHandler<E>(delivery: target.delivery) { context in
      let event = context.event
      guard target.delivery.handOver(handle, { body(event) }) else { return nil }
      return consumes ? .consume : .continue
    }
    return add(handler, mode, key: eventKey(E.self), handle)
  }

  @usableFromInline
  final func makeDelivery(
    _ executeOn: ExecuteEventOn, _ central: EventCentral, _ actor: (any Actor)?
  ) -> TreeTarget {
    let context = central.listener.contexts.context(for: executeOn, on: actor)
    return TreeTarget(TreeDelivery(context.consumer, context.place), context)
  }

  @usableFromInline
  final func makeDelivery(_ thread: EventThread) -> TreeTarget {
    TreeTarget(
      TreeDelivery(thread.consumer, thread.consumer.pump == nil ? .eventThread : .mainQueue), nil)
  }
}

/// Where a handler runs, with one use of the execution context: held by the handler's closure, with
/// which that use ends.
@usableFromInline
final class TreeTarget: Sendable {
  @usableFromInline let delivery: TreeDelivery
  private let context: ExecutionContext?

  init(_ delivery: TreeDelivery, _ context: ExecutionContext?) {
    self.delivery = delivery
    self.context = context
  }

  deinit {
    context?.leave()
  }
}
