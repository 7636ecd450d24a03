// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventCore
import EventCoreTestSupport
import Testing

/// Where a listener runs, as tests enumerate it.
enum ListenerPlace: CaseIterable, CustomTestStringConvertible {
  case listenerThread, task, serialQueue, concurrentQueue, mainQueue

  /// The places that several listeners can share. Each listener of a task has a task of its own.
  static let shared = allCases.filter { $0 != .task }

  var testDescription: String { "\(self)" }

  var executeOn: ExecuteEventOn {
    switch self {
    case .listenerThread: .listenerThread
    case .task: .taskThread
    case .serialQueue: .dispatchQueue(DispatchQueue(label: "serial"))
    case .concurrentQueue:
      .dispatchQueue(DispatchQueue(label: "concurrent", attributes: .concurrent))
    case .mainQueue: .dispatchQueue(.main)
    }
  }
}

struct Ping: Eventable { var number = 0 }
struct Pong: Eventable { var number = 0 }
struct Carrying: Eventable { var token: Lifetime.Token }

/// An object that owns listeners.
final class Requester: Sendable {
  let token: Lifetime.Token
  let log: Log<Int>
  let inHandler: (@Sendable (Ping) -> Void)?

  init(
    _ token: Lifetime.Token, _ log: Log<Int> = Log(),
    inHandler: (@Sendable (Ping) -> Void)? = nil
  ) {
    self.token = token
    self.log = log
    self.inHandler = inHandler
  }

  func onPing(_ event: Ping) {
    inHandler?(event)
    log.append(event.number)
  }

  func onTimedPing(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) {
    log.append(event.number)
  }

  func isEven(_ event: Ping, _ priority: EventPriority, _ dispatchTime: DispatchTime) -> Bool {
    event.number % 2 == 0
  }
}

/// A reference that a test can drop from within a closure.
final class Box<Value: AnyObject & Sendable>: Sendable {
  private let state: Guarded<Value?>

  init(_ value: Value?) { state = Guarded(value) }

  var value: Value? {
    get { state.withLock { $0 } }
    set {
      // The old value is released outside of the lock.
      let old = state.withLock { state in
        defer { state = newValue }
        return state
      }
      withExtendedLifetime(old) {}
    }
  }
}

/// Holds an execution context inside a handler until it is let go, so that what is dispatched meanwhile
/// waits.
struct HeldPlace: Sendable {
  private let leave = Gate()

  /// Returns once the context stands in a handler. `executeOn` is the same value as the listener's.
  init(_ executeOn: ExecuteEventOn, on central: EventCentral) {
    self.init(OpenContext(executeOn: executeOn), on: central)
  }

  /// Returns once the context stands in a handler.
  init(_ context: OpenContext, on central: EventCentral) {
    let entered = Gate()
    let handle = context.register { isolation in
      HeldThread.Hold.addListener(
        nil, { hold in hold.stand() }, executeOn: context.executeOn, on: central)
    }
    HeldThread.Hold(entered: entered, leave: leave).stack(priority: .highest, on: central)
    entered.pass()
    handle.remove()
  }

  func letGo() { leave.open() }
}
