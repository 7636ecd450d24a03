// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A program that was written for EventsTree imports this module alone: it exports EventCore, and adds what
// only such programs use.
@_exported public import EventCore

/// `Eventable`, by its name in EventsTree.
public typealias Event = Eventable

extension EventNode: Equatable {
  /// Whether both are the same object.
  public static func == (one: EventNode, other: EventNode) -> Bool { one === other }
}
