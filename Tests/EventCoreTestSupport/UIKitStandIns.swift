// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Stand-ins for UIKit's classes, isolated as there: on the MainActor, and with the leniency in Swift 5
// mode that imported Objective-C gets. They conform as UIKit's own do (AppleResponders.swift).

#if !canImport(UIKit)
  import EventCore

  @preconcurrency
  @MainActor
  open class UIResponder {
    public init() {}
    open var next: UIResponder? { nil }
  }

  extension UIResponder: @preconcurrency EventResponder {
    public var nextResponder: (any EventResponder)? { next }
  }

  @preconcurrency
  @MainActor
  open class UIView: UIResponder {
    public private(set) weak var superview: UIView?
    public private(set) var subviews: [UIView] = []
    fileprivate weak var controller: UIViewController?

    open override var next: UIResponder? { controller ?? superview }

    open func addSubview(_ view: UIView) {
      subviews.append(view)
      view.superview = self
    }
  }

  @preconcurrency
  @MainActor
  open class UIButton: UIView {}

  @preconcurrency
  @MainActor
  open class UIViewController: UIResponder {
    public let view = UIView()

    public override init() {
      super.init()
      view.controller = self
    }

    open override var next: UIResponder? { view.superview }
  }
#endif
