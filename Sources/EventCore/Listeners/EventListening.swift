// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An object that listens to events by ``EventMethod`` properties.
public protocol EventListening: AnyObject {
  /// Registers the object's listeners: by default all its ``EventMethod`` properties, on
  /// ``EventCentral/shared``. Call it where the listeners should be called, at the end of the
  /// initialiser for instance.
  ///
  /// A property that is registered already is left alone.
  func registerListeners()
}

extension EventListening {
  /// Registers all ``EventMethod`` properties on the shared central.
  ///
  /// **Threads**, **Complexity**: as ``registerListeners(on:)``.
  public func registerListeners() {
    registerListeners(on: EventCentral.shared)
  }

  /// Registers all ``EventMethod`` properties on a central, or with a listener.
  ///
  /// - Parameter listenable: The central or the listener.
  ///
  /// **Threads**: any; with `.requesterThread` the caller's context is where they are called.
  ///
  /// **Complexity**: O(properties), by reflection: some microseconds.
  public func registerListeners(on listenable: any EventListenable) {
    for method in eventMethods(of: self) {
      method.register(owner: self, on: listenable.listener)
    }
  }
}
