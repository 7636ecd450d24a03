// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What AppleResponders.swift needs of UIKit, declared as its interface has it.

@preconcurrency
@MainActor
open class UIResponder {
  public init() {}
  open var next: UIResponder? { nil }
}

@preconcurrency
@MainActor
open class UIView: UIResponder {
  open private(set) weak var superview: UIView?
  open override var next: UIResponder? { superview }

  open func addSubview(_ view: UIView) {
    view.superview = self
  }
}
