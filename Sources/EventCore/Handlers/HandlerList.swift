// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The handlers that a consumer calls for the events of one type, in the order of their
/// registration.
///
/// A removed handler leaves a gap, which the consumer skips; gaps are closed when there are as many
/// as handlers, and slots double when they run out. So adding and removing cost the same at ten
/// handlers and at ten thousand. The consumer's thread only. Not in an array: that costs retains
/// and access checks per event.
struct HandlerList: ~Copyable {
  /// A handler of the list and what is needed of it before its call, side by side, so that no load
  /// has to wait for another one.
  struct Slot {
    /// With a reference; nil for a gap.
    var handler: Unmanaged<EventHandler>?
    /// `HandlerState.address`.
    var state: UInt
  }

  /// The slots in use, gaps among them.
  private(set) var first: UnsafeMutablePointer<Slot>
  private(set) var count = 0
  private var capacity = 1
  private var gaps = 0
  /// Fewer gaps are not worth a move.
  private static let fewestGaps = 8
  /// How many handlers have to be asked before each call, beside being alive.
  private var judging = 0

  /// Whether every slot has a handler that takes each event, if its requester is there.
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

  /// Takes a handler out. The caller lets go of it when the list is in order: what a closure holds
  /// may end with it, and that is user code.
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

  /// Moves the handlers together, to new memory.
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
