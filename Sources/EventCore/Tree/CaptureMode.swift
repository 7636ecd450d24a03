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
  public let rawValue: Int

  /// Makes a mode from its bits; bits without a meaning are ignored.
  @inlinable
  public init(rawValue: Int) {
    self.rawValue = rawValue & 15
  }

  /// The same bits, as the cores know them.
  @usableFromInline
  var bits: UInt8 { UInt8(truncatingIfNeeded: rawValue) }

  /// While the event climbs to the root, beginning with the node that raised it.
  public static let onRaise = CaptureMode(rawValue: 1)
  /// While the event goes down from the root to every node of the tree.
  public static let onPropagate = CaptureMode(rawValue: 2)
  /// After the call the event goes no further: no other handler is called for it.
  public static let consumeEvent = CaptureMode(rawValue: 4)
  /// Before the other phases, from the root down to the node that raised the event: the capture phase of the
  /// DOM.
  public static let onCapture = CaptureMode(rawValue: 8)

  @usableFromInline
  static let phases: CaptureMode = [.onCapture, .onRaise, .onPropagate]

  /// Traps if the mode names no phase (D12).
  @usableFromInline
  func requirePhase() {
    require(
      !isDisjoint(with: .phases),
      """
      A handler of a node is called in the phases that its mode names, and removed by one of them, and the mode \
      \(self) names none: add .onRaise, .onPropagate or .onCapture.
      """)
  }
}

extension CaptureMode: CustomStringConvertible {
  /// The names of the options.
  public var description: String { "[\(names.joined(separator: ", "))]" }

  var names: [String] {
    let all: [(CaptureMode, String)] = [
      (.onCapture, "onCapture"), (.onRaise, "onRaise"), (.onPropagate, "onPropagate"),
      (.consumeEvent, "consumeEvent"),
    ]
    return all.filter { contains($0.0) }.map(\.1)
  }
}
