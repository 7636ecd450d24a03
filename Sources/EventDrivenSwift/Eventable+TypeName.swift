// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

extension Eventable {
  /// The name of the type, with the module and the types around it, for texts. Types are told apart
  /// by themselves (D11), never by this.
  ///
  /// **Threads**: any. **Complexity**: a string is made for each call.
  public static func getEventTypeName() -> String { String(reflecting: self) }

  /// The name of this event's type. As the static form.
  public func getEventTypeName() -> String { String(reflecting: Self.self) }
}
