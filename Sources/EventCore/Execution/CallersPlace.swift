// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch

/// The main queue, on which the MainActor runs. `MainActor.isCurrent` is also true inside another queue's `sync`.
enum MainQueue {
  private static let mark: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether the caller runs on the main queue or on the main thread. Dispatch answers for both: under
  /// `dispatchMain()` other threads serve the main queue, and before that the main thread counts as on it.
  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

  /// Whether a queue is the main queue. Its identity does not tell: on Linux each use of
  /// `DispatchQueue.main` makes a new object.
  static func isMain(_ queue: DispatchQueue) -> Bool { queue.getSpecific(key: mark) == true }
}

/// The actor on which `registerListeners()` was called, for the listeners that it registers: the function
/// has no isolation parameter that would tell.
enum RegisteringActor {
  private final class Holder {
    let actor: any Actor
    init(_ actor: any Actor) { self.actor = actor }
  }
  private static let current = ThreadLocal<Holder>()

  /// Nil outside of `registerListeners()`, and if its caller is on no actor.
  static var value: (any Actor)? { current.value?.actor }

  /// Runs `register`, which registers listeners, for a caller on `actor`.
  static func with(_ actor: (any Actor)?, _ register: () -> Void) {
    guard let actor else { return register() }
    current.with(Holder(actor), register)
  }
}

extension ExecutionContexts {
  /// The context that a listener asks for; nil is the caller's own. `actor`: the caller's, if it is on one.
  package func context(for executeOn: ExecuteEventOn?, on actor: (any Actor)?) -> ExecutionContext {
    switch executeOn {
    case nil:
      // The callback need not be Sendable, so it must not run elsewhere.
      require(
        actor != nil || Self.surroundings == .oneByOne,
        """
        Without executeOn: a callback is called where it is registered: on an actor, on the main thread or \
        in a handler of an event thread or of a listener's thread. This is a task, a dispatch queue or a \
        thread to which no event can come back, or a function that is not isolated, which does not know its \
        caller's actor. Register it in one of those places, give the function a parameter isolation: isolated \
        (any Actor)? = #isolation, or say where it is to be called: executeOn: .listenerThread, for instance. In Swift 5 \
        mode a method of the MainActor is such a callback, too: pass { @MainActor … in } instead.
        """)
      fallthrough
    case .requesterThread: return actor.map { self.actor($0) } ?? current()
    case .listenerThread: return listenerThread()
    case .taskThread: return task()
    case .dispatchQueue(let queue): return self.queue(queue)
    case .pump(let place): return thread(place.consumer)
    }
  }

  /// The context of `ExecuteEventOn.requesterThread`, for a caller that is on no actor.
  package func current() -> ExecutionContext {
    if let actor = RegisteringActor.value {
      return self.actor(actor)
    }
    let consumer = Consumer.current.value
    if let consumer, consumer.isInLoop {
      return place(of: consumer)
    }
    // The queue, and not the MainActor: inside another queue's `sync` the callback may use what that queue guards.
    if MainQueue.isCurrent {
      return mainQueue()
    }
    if let consumer {
      return place(of: consumer)
    }
    return withUnsafeCurrentTask { $0 != nil } ? task() : listenerThread()
  }

  private func place(of consumer: Consumer) -> ExecutionContext {
    Self.driver(of: consumer)?.context(in: self) ?? thread(consumer)
  }

  /// What else runs in the caller's place; nil if `current()` would be another place.
  static var surroundings: Surroundings? {
    if RegisteringActor.value != nil { return .oneByOne }
    let consumer = Consumer.current.value
    if MainQueue.isCurrent, consumer?.isInLoop != true { return .oneByOne }
    return consumer.map { driver(of: $0)?.surroundings ?? .oneByOne }
  }

  /// Nil for a consumer that has a thread.
  static func driver(of consumer: Consumer) -> (any ContextDriver)? {
    guard let driver = consumer.pump?.driver else { return nil }
    return (driver as? SerialDriver).map { $0.original } ?? (driver as? any ContextDriver)
  }

  /// Whether `current()` is the caller's place.
  static var isCallerInPlace: Bool { surroundings.map { $0 != .nobodyElse } ?? false }
}

extension Consumer {
  /// Whether the place of its handlers is a loop, a pump's or a deterministic central's, whose thread may be the main
  /// one; and not the main queue, which such a central runs as well.
  fileprivate var isInLoop: Bool { isDrivenByLoop && (pump?.driver as? SerialDriver)?.isOnMain != true }
}
