// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// What an observed event thread knows about its observers.
@usableFromInline
final class ObserverRegistry: Sendable {
  @usableFromInline let all = ObserverGroup()
  @usableFromInline let keyed = KeyedObserverGroups()

  init() {}
}

/// Event threads can be observed: by those that want to be told by this very thread, while its
/// events reach whoever listens. All of it is as for a ``KeyedObservableThreadSafeClass``.
///
/// **Threads**: any, for every member, also inside a callback; the removals also in the observer's
/// `deinit`. A thread that nobody observes pays nothing for it.
extension EventThread: KeyedObservable {
  /// Nil as long as nobody has ever observed this thread.
  @usableFromInline
  var registryIfAny: ObserverRegistry? {
    // Nothing else is attached: see below.
    attachment.value.map { unsafeDowncast($0, to: ObserverRegistry.self) }
  }

  private var registry: ObserverRegistry {
    unsafeDowncast(attachment.value(or: ObserverRegistry.init), to: ObserverRegistry.self)
  }

  /// Adds an observer behind the others, to be called in the caller's context. If it is there
  /// already, nothing changes.
  public func addObserver(
    _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    addObserver(observer, executeOn: .requesterThread, isolation: isolation)
  }

  /// Adds an observer behind the others, with where it is called. If it is there already, nothing
  /// changes.
  public func addObserver(
    _ observer: AnyObject, executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    // Not refused: only groups of keys close.
    registry.all.add(observer) {
      execution.context(in: central.listener.contexts, on: isolation)
    }
  }

  /// Adds several observers, in their order.
  public func addObserver(
    _ observers: [AnyObject], executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for observer in observers {
      addObserver(observer, executeOn: execution, isolation: isolation)
    }
  }

  /// Removes an observer: after the return no call of it begins. One that runs goes on.
  public func removeObserver(_ observer: AnyObject) {
    registryIfAny?.all.remove(observer)
  }

  /// Calls a closure with every observer that is of the type of the closure's parameter, each where
  /// it wants to be called.
  ///
  /// ```swift
  /// withObservers { (observer: TemperatureProcessorObserver) in
  ///   observer.onTemperatureEvent(temperatureInCelsius: event.temperatureInCelsius)
  /// }
  /// ```
  @inlinable
  @preconcurrency
  public func withObservers<Observer>(
    _ code: @escaping @Sendable (_ observer: Observer) -> Void
  ) {
    registryIfAny?.all.notify(code)
  }

  /// Adds an observer of one key, behind the others of that key, to be called in the caller's
  /// context.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observer: AnyObject, isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(key: key, observer, executeOn: .requesterThread, isolation: isolation)
  }

  /// Adds an observer of one key, behind the others of that key, with where it is called.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observer: AnyObject, executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    registry.keyed.add(observer, for: AnyHashable(key)) {
      execution.context(in: central.listener.contexts, on: isolation)
    }
  }

  /// Adds several observers of one key, in their order.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    key: Key, _ observers: [AnyObject], executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: [key], observers, executeOn: execution, isolation: isolation)
  }

  /// Adds an observer of several keys.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observer: AnyObject, executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    addKeyedObserver(keys: keys, [observer], executeOn: execution, isolation: isolation)
  }

  /// Adds several observers of several keys.
  @preconcurrency
  public func addKeyedObserver<Key: Hashable & Sendable>(
    keys: [Key], _ observers: [AnyObject], executeOn execution: ObserverExecution,
    isolation: isolated (any Actor)? = #isolation
  ) {
    for key in keys {
      for observer in observers {
        addKeyedObserver(key: key, observer, executeOn: execution, isolation: isolation)
      }
    }
  }

  /// Removes an observer of one key: after the return no call of it for that key begins. It stays
  /// with its other keys.
  @preconcurrency
  public func removeKeyedObserver<Key: Hashable & Sendable>(key: Key, _ observer: AnyObject) {
    registryIfAny?.keyed.remove(observer, for: AnyHashable(key))
  }

  /// Calls a closure with every observer of a key that is of the type of the closure's parameter,
  /// each where it wants to be called.
  @inlinable
  @preconcurrency
  public func withKeyedObservers<Key: Hashable & Sendable, Observer>(
    key: Key, _ code: @escaping @Sendable (_ key: Key, _ observer: Observer) -> Void
  ) {
    registryIfAny?.keyed.notify(AnyHashable(key)) { (observer: Observer) in code(key, observer) }
  }
}
