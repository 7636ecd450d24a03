// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreTestSupport

@testable import EventCore

/// A worker of a shared mailbox without an `EventThread` around it.
final class TestWorker: Sendable {
  let consumer: Consumer
  let direct: any RouterCore
  private let leave = Gate()

  init(
    _ mailbox: SharedMailbox, core: EventCentral.Core, strategy: EventWaitStrategy = .park
  ) {
    let basis = CentralBasis(core: core)
    direct = basis.makeRouter()
    consumer = Consumer(
      basis, routes: direct, direct: direct, strategy: strategy,
      hooks: ConsumerHooks(shared: mailbox))
  }

  @discardableResult
  func add<E: Eventable>(isTimed: Bool = false, _ body: @escaping @Sendable (E) -> Void)
    -> any EventListenerHandling
  {
    let handler = TypedHandler<E>(HandlerState(isTimed: isTimed)) { event, _, _, _ in
      body(event)
      return true
    }
    return EventCallbackHandle(
      handler.state, consumer, consumer.registry.add(handler, eventTypeActions(E.self)))
  }

  func start() {
    consumer.admit()
    startThread(named: "worker") { [consumer] in consumer.run() }
  }

  /// Posts to this worker alone.
  @discardableResult
  func post<E: Eventable>(_ event: E, _ method: EventDispatchMethod, _ priority: EventPriority)
    -> Bool
  {
    dispatch(event, lane: Lane(method, priority), through: direct) != 0
  }

  /// Has the worker stand in a handler until `letGo`. Returns once the worker is in it.
  func hold() {
    let entered = Gate()
    let handle = add { (hold: HeldThread.Hold) in hold.stand() }
    post(HeldThread.Hold(entered: entered, leave: leave), .stack, .highest)
    entered.pass()
    handle.remove()
  }

  func letGo() { leave.open() }
}
