// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// UIKit's and AppKit's responders emit events. This file is empty where neither exists, as on
// Linux, where the project's CI runs: there it is compiled against stand-ins
// (scripts/check-apple-responders.sh), and the tests have a hierarchy of their own.
//
// The chain is on no actor, these responders are on the MainActor: `@preconcurrency` has the
// compiler check at run time that it is climbed there.

#if canImport(UIKit) && !os(watchOS)
  import UIKit

  /// Every view and view controller emits events.
  extension UIResponder: @preconcurrency EventResponder {
    /// The next responder: `next`.
    public var nextResponder: (any EventResponder)? { next }
  }
#elseif canImport(AppKit)
  import AppKit

  /// Every view, window and view controller emits events.
  extension NSResponder: @preconcurrency EventResponder {
    // AppKit's own `nextResponder` has another type and keeps its name: without the first
    // attribute, every use of it in a program that imports this module would be ambiguous.
    /// The next responder, as a link of the chain of events.
    @_disfavoredOverload
    @_implements(EventResponder, nextResponder)
    public var nextEventResponder: (any EventResponder)? { nextResponder }
  }
#endif
