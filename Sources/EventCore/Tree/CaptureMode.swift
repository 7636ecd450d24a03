// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// When a handler of a node is called, and whether it consumes the event.
///
/// ```swift
/// node.addHandler(.onRaise) { (event: LoginEvent) in greet(event.user) }
/// node.addHandler([.onRaise, .consumeEvent]) { (event: LoginEvent) in logIn(event.user) }
/// ```
///
/// A mode names at least one phase: ``onCapture``, ``onRaise`` or ``onPropagate``.
public struct CaptureMode: OptionSet, Hashable, Sendable {
  /// The phases and choices as bits, for `OptionSet`.
  public let rawValue: UInt8

  /// Makes a mode from its bits; those that name nothing are left out.
  @inlinable
  public init(rawValue: UInt8) {
    self.rawValue = rawValue & 15
  }

  /// While the event climbs from the node that raised it, which is the first, to the root.
  public static let onRaise = CaptureMode(rawValue: 1)
  /// While the event goes down from the root to every node of the tree.
  public static let onPropagate = CaptureMode(rawValue: 2)
  /// After the call the event goes no further: nobody is called who was not called before.
  public static let consumeEvent = CaptureMode(rawValue: 4)
  /// Before everything else, from the root down to the node that raised it, which is the last: what
  /// DOM calls the capture phase.
  public static let onCapture = CaptureMode(rawValue: 8)

  /// The phases alone.
  @usableFromInline
  static let phases: CaptureMode = [.onCapture, .onRaise, .onPropagate]

  /// Has a mode without a phase trap (D12).
  @usableFromInline
  func requirePhase() {
    require(
      !isDisjoint(with: .phases),
      """
      A handler of a node is called in the phases that its mode names, and the mode \(self) names \
      none, so that it would never be called: add .onRaise, .onPropagate or .onCapture.
      """)
  }
}

extension CaptureMode: CustomStringConvertible {
  /// The options by their names.
  public var description: String { "[\(names.joined(separator: ", "))]" }

  var names: [String] {
    let all: [(CaptureMode, String)] = [
      (.onCapture, "onCapture"), (.onRaise, "onRaise"), (.onPropagate, "onPropagate"),
      (.consumeEvent, "consumeEvent"),
    ]
    return all.filter { contains($0.0) }.map(\.1)
  }
}
