// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

extension EventNode {
  /// Adds a handler that runs in a place that you name instead of on the thread that raises.
  ///
  /// The event is handed over to that place, and continues at once, so the handler cannot decide about it.
  /// With ``CaptureMode/consumeEvent`` the hand-over consumes the event, unless the place has ended.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, executeOn: .dispatchQueue(disk)) { (event: SaveRequested) in
  ///   save(event)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - mode: In which phases the event is handed over, and whether that consumes it.
  ///   - type: The exact type of event.
  ///   - executeOn: Where the handler runs; `.requesterThread` is the context of this call.
  ///   - central: The central of the place: that of the listener thread, and of the listeners that share the
  ///     place. It is not retained: the place, and with it the handler, ends with the central.
  ///   - isolation: Leave it out. On an actor, `.requesterThread` is that actor.
  ///   - handler: The closure. It is retained until it is removed or the node ends; after the end of the place until the
  ///     next event for it.
  /// - Returns: A handle that removes the handler, with calls that were handed over and have not begun.
  ///
  /// **Threads**: any, also inside a handler.
  ///
  /// **Order**: in one place the handlers are called in the order in which a thread hands events over.
  ///
  /// **Complexity**: a hand-over costs the thread that raises a dispatch and an allocation.
  @inlinable
  @discardableResult
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self, executeOn: ExecuteEventOn,
    of central: EventCentral = .shared, isolation: isolated (any Actor)? = #isolation,
    _ handler: @escaping @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(mode, makeDelivery(executeOn, central, isolation), handler)
  }

  /// Adds a handler that runs on an event thread, with the normal priority. The thread is not retained: the
  /// handler ends with it. All else is as for the form with ``ExecuteEventOn``.
  @inlinable
  @discardableResult
  public final func addHandler<E: Eventable>(
    _ mode: CaptureMode = .onPropagate, for type: E.Type = E.self, executeOn thread: EventThread,
    _ handler: @escaping @Sendable (_ event: E) -> Void
  ) -> EventNodeHandle {
    add(mode, makeDelivery(thread), handler)
  }

  /// Adds a handler that runs on the MainActor.
  ///
  /// ```swift
  /// node.addHandler(executeOn: MainActor.shared) { (event: ThemeChanged) in view.apply(event.theme) }
  /// ```
  ///
  /// It always runs on the main queue, even if the main thread raises the event. The program has to serve
  /// that queue. All else is as for the form with ``ExecuteEventOn``.
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

  /// Adds a handler that runs on an actor.
  ///
  /// ```swift
  /// node.addHandler(.onRaise, executeOn: recorder) { (recorder: isolated Recorder, event: Tick) in
  ///   recorder.append(event)
  /// }
  /// ```
  ///
  /// The handler gets the actor and the event. The actor is not retained: the handler ends with it (D9). All
  /// else is as for the form with ``ExecuteEventOn``.
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
      // So that a removal before the call begins is seen (D6).
      context.register(handle)
      guard target.delivery.handOver(handle, { body(event) }) else { return nil }
      return consumes ? .consume : .continue
    }
    let added = add(handler, mode, key: eventKey(E.self), handle)
    // No event may come to find that the place has ended.
    if !target.delivery.isOpen { added.remove() }
    return added
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
    TreeTarget(TreeDelivery(thread.consumer, thread.consumer.place), nil)
  }
}

/// Where a handler runs. The handler's closure retains this object, whose end tells the execution context
/// that the handler does not need it any more.
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
