// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// How far a raised event goes: which phases it has. They come in the order in which they are
/// listed here, whatever the order in which they are written.
public struct EventRaiseScope: OptionSet, Hashable, Sendable {
  /// The phases and choices as bits, for `OptionSet`.
  public let rawValue: UInt8

  /// Makes a scope from its bits.
  @inlinable
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// From the root down to the node that raises it: ``CaptureMode/onCapture``.
  public static let capturing = EventRaiseScope(rawValue: 8)
  /// From the node that raises it up to the root: ``CaptureMode/onRaise``. What DOM calls bubbling.
  public static let bubbling = EventRaiseScope(rawValue: 1)
  /// From the root down to every node of the tree: ``CaptureMode/onPropagate``.
  public static let propagating = EventRaiseScope(rawValue: 2)
  /// All phases: the whole tree.
  public static let tree: EventRaiseScope = [.capturing, .bubbling, .propagating]
}

/// In which phase of a raise a handler is called.
public enum EventPhase: UInt8, CaseIterable, Sendable {
  /// Going up, from the node that raised the event to the root.
  case raise = 1
  /// Going down, from the root to every node.
  case propagate = 2
  /// Going down to the node that raised the event, before the other two.
  case capture = 8
}

/// What a handler says about the event that it was called for.
public enum EventDecision: Sendable {
  /// The event goes on.
  case `continue`
  /// The node's other handlers of this phase are called, and nobody after them: the event is
  /// consumed by this node.
  case stopAfterThisNode
  /// The event goes no further: nobody is called who was not called before.
  case consume
}

/// The result of a raise.
public struct EventOutcome: Equatable, Sendable {
  /// How many calls of handlers there were, those that were handed over to run elsewhere among them.
  public var handlerCount: Int
  /// The ``EventNode/id`` of the node whose handler consumed the event; nil if none did. If that
  /// handler has ended its node, a node that was made since may have the same.
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
