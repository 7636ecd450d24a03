// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An object that can emit events: part of a chain that leads from a view up to the coordinators.
///
/// ```swift
/// class View: EventResponder {
///   weak var superview: View?
///   var nextResponder: (any EventResponder)? { superview }
/// }
/// ```
///
/// Every `UIResponder` of UIKit and every `NSResponder` of AppKit is one, so every view and view
/// controller. So are coordinators.
///
/// **Threads**: one thread at a time uses a chain: in UIKit and AppKit the main thread. Everything runs on
/// the calling thread, before the call returns.
public protocol EventResponder: AnyObject {
  /// The next responder on the way up; nil at the top.
  ///
  /// It is read for each event, before any interceptor is asked. A chain that leads back to itself traps.
  var nextResponder: (any EventResponder)? { get }
}

/// What ``Coordinated``, ``UICoordinated`` and ``EventIntercepting`` have in common. Conform to those.
///
/// With it one cast tells that a responder is none of the three.
public protocol EventWaypoint: EventResponder {}

/// A responder that intercepts events on their way, as coordinators do.
///
/// ```swift
/// final class SpinnerController: ViewController, EventIntercepting {
///   func intercept(_ event: any CoordinateEvents) -> EventInterception {
///     guard case AppEvents.Loading.began = event else { return .pass }
///     spin()
///     return .handled
///   }
/// }
/// ```
///
/// Implement one of the two methods. Without either every event passes.
///
/// View controllers in Swift 6 mode conform by `@preconcurrency EventIntercepting`, which checks at run
/// time that they are on the MainActor.
///
/// **Threads**: both methods are called on the thread that emits.
public protocol EventIntercepting: EventWaypoint {
  /// Called for each passing event. Returns true to stop it; ``intercept(_:)`` is harder to misread.
  func interceptEvent(_ event: CoordinateEvents) -> Bool

  /// Called for each passing event. Returns whether it goes on; by default ``interceptEvent(_:)`` decides.
  func intercept(_ event: any CoordinateEvents) -> EventInterception
}

extension EventIntercepting {
  /// Lets every event pass.
  public func interceptEvent(_ event: CoordinateEvents) -> Bool { false }

  /// Asks ``interceptEvent(_:)``.
  public func intercept(_ event: any CoordinateEvents) -> EventInterception {
    interceptEvent(event) ? .handled : .pass
  }
}

extension EventResponder {
  /// Sends an event up the chain until an interceptor stops it.
  ///
  /// The chain goes from this responder to its ``nextResponder`` and so on, from the first ``Coordinated``
  /// responder to its coordinator, and from there to the parent coordinators. Every coordinator on it is
  /// asked, and every responder that is ``EventIntercepting``.
  ///
  /// The chain is found before the first of them is asked. Interceptors may take the hierarchy apart: all
  /// on the chain are kept alive and asked, except coordinators that were stopped meanwhile.
  ///
  /// - Parameters:
  ///   - event: What happened.
  ///   - includingEmitter: Whether this responder itself is asked first. By default it is not.
  /// - Returns: Whether an interceptor stopped the event.
  ///
  /// **Threads**: the interceptors run before it returns. An event that an interceptor emits reaches all of
  /// its own chain before the first event goes on.
  ///
  /// **Complexity**: O(length of the chain), without recursion. No allocation for events of up to 24 bytes
  /// and up to 32 interceptors.
  @inlinable
  @discardableResult
  public func emitEvent<E: CoordinateEvents>(
    _ event: E, includingEmitter: Bool = false
  ) -> EventEmission {
    withUnsafePointer(to: event) { payload in
      emit(
        Emission(key: ObjectIdentifier(E.self), payload: UnsafeRawPointer(payload), event: event),
        from: self, includingEmitter: includingEmitter)
    }
  }
}
