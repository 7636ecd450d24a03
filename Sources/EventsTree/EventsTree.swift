// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A program that comes from EventsTree imports this module and nothing else: all of EventCore, and
// what is written here for such programs alone.
@_exported public import EventCore

/// What EventsTree calls an event: `Eventable`.
public typealias Event = Eventable

extension EventNode: Equatable {
  /// Whether both are the same node.
  public static func == (one: EventNode, other: EventNode) -> Bool { one === other }
}
