// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// An event thread that stands inside a handler until the test lets it go, so that everything that
/// is dispatched meanwhile waits.
public struct HeldThread: Sendable {
  /// Holds the handler that gets it until `leave` is opened.
  public struct Hold: Eventable {
    private let (entered, leave): (Gate, Gate)

    public init(entered: Gate, leave: Gate) { (self.entered, self.leave) = (entered, leave) }

    public func stand() {
      entered.open()
      leave.pass()
    }
  }

  // The thread is not held, since a test may want it to end.
  private let leave = Gate()

  /// Returns once the thread stands in its handler.
  public init(_ thread: EventThread) {
    let entered = Gate()
    let handle = thread.addEventCallback { (hold: Hold) in hold.stand() }
    thread.stackEvent(Hold(entered: entered, leave: leave), priority: .highest)
    entered.pass()
    handle.remove()
  }

  public func letGo() { leave.open() }
}
