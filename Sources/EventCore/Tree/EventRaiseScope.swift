// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Which phases a raised event has, and so how far it goes. The phases always have the order of this list.
public struct EventRaiseScope: OptionSet, Hashable, Sendable {
  /// The phases and choices as bits, for `OptionSet`.
  public let rawValue: UInt8

  /// Makes a scope from its bits.
  @inlinable
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// From the root down to the node that raises the event: ``CaptureMode/onCapture``.
  public static let capturing = EventRaiseScope(rawValue: 8)
  /// From the node that raises the event up to the root: ``CaptureMode/onRaise``. The DOM calls it bubbling.
  public static let bubbling = EventRaiseScope(rawValue: 1)
  /// From the root down to every node of the tree: ``CaptureMode/onPropagate``.
  public static let propagating = EventRaiseScope(rawValue: 2)
  /// All phases: the whole tree.
  public static let tree: EventRaiseScope = [.capturing, .bubbling, .propagating]
}

/// The phase of a raise in which a handler is called.
public enum EventPhase: UInt8, CaseIterable, Sendable {
  /// Going up, from the node that raised the event to the root.
  case raise = 1
  /// Going down, from the root to every node.
  case propagate = 2
  /// Going down to the node that raised the event, before the other two.
  case capture = 8
}

/// What a handler decides about the event for which it was called.
public enum EventDecision: Sendable {
  /// The event goes on.
  case `continue`
  /// The node consumes the event: its other handlers of this phase are still called, and no others.
  case stopAfterThisNode
  /// The event goes no further: no other handler is called for it.
  case consume
}

/// The result of a raise.
public struct EventOutcome: Equatable, Sendable {
  /// How many handlers were called, including those whose call was handed over to another place.
  public var handlerCount: Int
  /// The ``EventNode/id`` of the node whose handler consumed the event; nil if none did. If that node has
  /// ended since, a newer node may have the same.
  public var consumer: ObjectIdentifier?

  /// Whether a handler consumed the event.
  @inlinable
  public var isConsumed: Bool { consumer != nil }

  /// Makes an outcome to compare with.
  @inlinable
  public init(handlerCount: Int = 0, consumer: ObjectIdentifier? = nil) {
    self.handlerCount = handlerCount
    self.consumer = consumer
  }
}
