// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An object that listens to events by ``EventMethod`` properties.
public protocol EventListening: AnyObject {
  // Disfavoured for the form with a parameter, which knows the caller's actor, and calls this.

  /// Registers the object's listeners: by default all its ``EventMethod`` properties, on
  /// ``EventCentral/shared``. Call it where the listeners should be called, at the end of the
  /// initialiser for instance: the properties of a class on the MainActor, on the MainActor. The
  /// compiler does not check that.
  ///
  /// A property that is registered already is left alone.
  @_disfavoredOverload
  func registerListeners()
}

extension EventListening {
  /// Registers all ``EventMethod`` properties on the shared central.
  ///
  /// **Threads**, **Complexity**: as ``registerListeners(on:isolation:)``.
  @_disfavoredOverload
  public func registerListeners() {
    registerListeners(on: EventCentral.shared, isolation: nil)
  }

  /// Registers the object's listeners, by its own ``registerListeners()`` if it has one.
  ///
  /// - Parameter isolation: Leave it out. On an actor, that actor is where everything is called that
  ///   is registered meanwhile without `executeOn:` or with `.requesterThread`.
  ///
  /// **Threads**, **Complexity**: as ``registerListeners(on:isolation:)``.
  public func registerListeners(isolation: isolated (any Actor)? = #isolation) {
    // Named with its type, it is the requirement, which a class may have implemented.
    let register: () -> Void = registerListeners
    RegisteringActor.with(isolation, register)
  }

  /// Registers all ``EventMethod`` properties on a central, or with a listener.
  ///
  /// - Parameters:
  ///   - listenable: The central, or an event thread, a pool or a listener of your own.
  ///   - isolation: Leave it out. On an actor, the properties are called on that actor.
  ///
  /// **Threads**: the main thread, an actor, or a handler, to which events can come back; any, if all
  /// properties say `executeOn:`, as ``ExecuteEventOn/requesterThread`` tells. Those of an actor are
  /// called on that actor.
  ///
  /// **Complexity**: O(properties), by reflection: some microseconds.
  public func registerListeners(
    on listenable: any EventListenable, isolation: isolated (any Actor)? = #isolation
  ) {
    for method in eventMethods(of: self) {
      method.register(owner: self, on: listenable.listener, isolation)
    }
  }
}
