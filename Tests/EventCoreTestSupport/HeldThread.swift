// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An event thread that stands inside a handler until the test lets it go, so that everything that
/// is dispatched meanwhile waits.
public struct HeldThread: Sendable {
  struct Hold: Eventable {
    let entered: Gate
    let leave: Gate
  }

  // Not the thread: a test may want it to go away.
  private let leave = Gate()

  /// Returns once the thread stands in its handler.
  public init(_ thread: EventThread) {
    let entered = Gate()
    let handle = thread.addEventCallback { (hold: Hold) in
      hold.entered.open()
      hold.leave.pass()
    }
    thread.stackEvent(Hold(entered: entered, leave: leave), priority: .highest)
    entered.pass()
    handle.remove()
  }

  public func letGo() { leave.open() }
}
