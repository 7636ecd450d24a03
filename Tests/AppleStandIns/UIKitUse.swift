// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A UIKit program with EventCore.

import EventCore
import UIKit

enum Shop: CoordinateEvents { case pay }

@main
struct Program {
  @MainActor
  static func main() {
    let (window, row) = (UIView(), UIView())
    window.addSubview(row)
    precondition(row.next === window)
    precondition(row.nextResponder as AnyObject? === window)
    // Nobody intercepts.
    precondition(row.emitEvent(Shop.pay) == .unhandled)
  }
}
