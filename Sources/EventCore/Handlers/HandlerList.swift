// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The handlers that a consumer calls for the events of one type, in the order of their registration. The
/// consumer's thread only.
///
/// A removed handler leaves a gap. Gaps are closed when there are as many gaps as handlers, and the
/// capacity doubles when it runs out, so adding and removing take amortised constant time. An array would
/// cost retains and access checks for each event.
struct HandlerList: ~Copyable {
  /// A handler and the address of its state, side by side, so that neither load waits for the other.
  struct Slot {
    /// Retained; nil for a gap.
    var handler: Unmanaged<EventHandler>?
    /// `HandlerState.address`.
    var state: UInt
  }

  private(set) var first: UnsafeMutablePointer<Slot>
  /// How many slots are in use, including gaps.
  private(set) var count = 0
  private var capacity = 1
  private var gaps = 0
  /// Fewer gaps are not worth a move.
  private static let fewestGaps = 8
  /// How many handlers judge events.
  private var judging = 0

  /// Whether there are handlers, and neither gaps nor handlers that judge.
  var isUniform: Bool { gaps == 0 && judging == 0 && count > 0 }

  init() {
    first = .allocate(capacity: 1)
  }

  deinit {
    for index in 0..<count {
      first[index].handler?.release()
    }
    first.deallocate()
  }

  mutating func append(_ handler: EventHandler) {
    if count == capacity {
      move(to: capacity * 2)
    }
    handler.state.index = count
    (first + count).initialize(
      to: Slot(handler: Unmanaged.passRetained(handler), state: handler.state.address))
    count += 1
    judging += handler.judges ? 1 : 0
  }

  /// Removes a handler and returns it, since its release may run user code, which has to wait until the
  /// caller is done with the list.
  mutating func remove(_ state: HandlerState) -> EventHandler? {
    guard let index = state.index, let handler = first[index].handler else { return nil }
    state.index = nil
    first[index].handler = nil
    judging -= handler._withUnsafeGuaranteedRef { $0.judges } ? 1 : 0
    gaps += 1
    if gaps == count {
      (count, gaps) = (0, 0)
    } else if gaps >= Self.fewestGaps, gaps * 2 >= count {
      move(to: capacity)
    }
    return handler.takeRetainedValue()
  }

  mutating func removeAll() -> [EventHandler] {
    let all = (0..<count).compactMap { first[$0].handler?.takeRetainedValue() }
    for handler in all {
      handler.state.index = nil
    }
    (count, gaps, judging) = (0, 0, 0)
    return all
  }

  /// Moves the handlers to new memory, without the gaps.
  private mutating func move(to capacity: Int) {
    let new = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
    var next = 0
    for index in 0..<count {
      guard let handler = first[index].handler else { continue }
      handler._withUnsafeGuaranteedRef { $0.state.index = next }
      (new + next).initialize(to: first[index])
      next += 1
    }
    first.deallocate()
    first = new
    self.capacity = capacity
    (count, gaps) = (next, 0)
  }
}
