// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// An AppKit program with EventCore, in which `nextResponder` still means AppKit's property.

import AppKit
import EventCore

enum Shop: CoordinateEvents { case pay }

final class Window: NSView {
  var handled = 0
}

/// Overrides the property, as programs do that give a view another place in the chain.
final class Row: NSView {
  override var nextResponder: NSResponder? {
    get { super.nextResponder }
    set { super.nextResponder = newValue }
  }
}

@main
struct Program {
  @MainActor
  static func main() {
    let (window, row) = (Window(), Row())
    window.addSubview(row)
    let inferred = row.nextResponder
    let stated: NSResponder? = row.nextResponder
    precondition(inferred === window && stated === window)
    let responder: any EventResponder = row
    precondition(responder.nextResponder as AnyObject? === window)
    // Nobody intercepts.
    precondition(row.emitEvent(Shop.pay) == .unhandled)
    row.nextResponder = nil
    precondition(responder.nextResponder == nil)
  }
}
