// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// UIKit's and AppKit's responders emit events. On Linux, where the project's CI runs, this file is compiled
// against stand-ins (scripts/check-apple-responders.sh).
//
// The chain is on no actor, but these responders are on the MainActor: with `@preconcurrency` each use
// through the protocol checks at run time that it is there.

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
    // AppKit's own `nextResponder` has another type. Without the first attribute, every use of it in a
    // program that imports this module would be ambiguous.
    /// The next responder: AppKit's `nextResponder`.
    @_disfavoredOverload
    @_implements(EventResponder, nextResponder)
    public var nextEventResponder: (any EventResponder)? { nextResponder }
  }
#endif
