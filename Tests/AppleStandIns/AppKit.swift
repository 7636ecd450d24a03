// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What AppleResponders.swift needs of AppKit, declared as its interface has it.

@preconcurrency
@MainActor
open class NSResponder {
  public init() {}
  unowned(unsafe) open var nextResponder: NSResponder?
}

@preconcurrency
@MainActor
open class NSView: NSResponder {
  open private(set) weak var superview: NSView?

  open func addSubview(_ view: NSView) {
    view.superview = self
    view.nextResponder = self
  }
}
