// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// An object from which events can be emitted: a link of a chain that leads up, from a view through
/// those around it to the coordinators.
///
/// ```swift
/// class View: EventResponder {
///   weak var superview: View?
///   var nextResponder: (any EventResponder)? { superview }
/// }
/// ```
///
/// Where UIKit exists, every `UIResponder` is one, and where AppKit exists, every `NSResponder`;
/// with it every view and every view controller. Coordinators are responders too.
///
/// **Threads**: a chain belongs to whoever owns its responders: the MainActor in UIKit, and one
/// thread at a time elsewhere. Everything here runs on the calling thread, before the call
/// returns.
public protocol EventResponder: AnyObject {
  /// Who is next on the way up; nil at the top.
  ///
  /// It is asked for each event anew, before anybody is asked about the event. A chain that leads
  /// back to itself is a mistake, and traps.
  var nextResponder: (any EventResponder)? { get }
}

/// A responder where an event does more than pass: what ``Coordinated``, ``UICoordinated`` and
/// ``EventIntercepting`` have in common. Conform to those.
///
/// It is there for the sake of all others: one look tells that a view is none of the three.
public protocol EventWaypoint: EventResponder {}

/// A responder that looks at the events that pass it, as coordinators do.
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
/// Implement one of the two methods, in the class that conforms. Without either every event passes.
///
/// View controllers in Swift 6 mode conform by `@preconcurrency EventIntercepting`, which checks at
/// run time that they are on the MainActor.
///
/// **Threads**: both methods are called on the thread that emits, which is the chain's own.
public protocol EventIntercepting: EventWaypoint {
  /// Looks at an event; returns true to stop it.
  ///
  /// **Advice**: mind that `true` means "stop", not "go on": ``intercept(_:)`` cannot be misread.
  func interceptEvent(_ event: CoordinateEvents) -> Bool

  /// Looks at an event, and says whether it goes on. As long as it is not implemented,
  /// ``interceptEvent(_:)`` decides.
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
  /// Sends an event up the chain until somebody stops it.
  ///
  /// The chain: from this responder to its ``nextResponder`` and so on; from the first that
  /// belongs to a coordinator (``Coordinated``) to that coordinator; from there to the parent
  /// coordinators. On it are asked, in this order, the responders that are ``EventIntercepting``
  /// and every coordinator.
  ///
  /// The chain is that of the moment of emission: handlers may take the hierarchy apart, and still
  /// everybody who was on it is asked, and kept alive until then. Coordinators that were stopped
  /// meanwhile are not asked.
  ///
  /// - Parameters:
  ///   - event: What happened.
  ///   - includingEmitter: Asks this responder itself first, if it intercepts. By default the event
  ///     begins with the one above it.
  /// - Returns: Whether somebody stopped it.
  ///
  /// **Threads**: that of the chain. The interceptors run before it returns; an interceptor may
  /// emit: that event is through before the first one goes on.
  ///
  /// **Complexity**: O(length of the chain). No allocation for events of up to 24 bytes and up to
  /// 32 interceptors; the event is put in a box once otherwise. No recursion.
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
