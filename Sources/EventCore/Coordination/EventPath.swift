// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The interceptors of a chain in order, on the stack, or on the heap if there are many.
struct EventPath: ~Copyable {
  /// An interceptor on a chain. Not copyable, since each copy would be retained and released.
  enum Stop: ~Copyable {
    case coordinator(EventCoordinator)
    case responder(any EventIntercepting)

    borrowing func offer(_ emission: Emission) -> EventInterception {
      switch self {
      case .coordinator(let coordinator): coordinator.offer(emission)
      case .responder(let responder): responder.intercept(emission.event)
      }
    }
  }

  static let countOnStack = 32

  private var stops: UnsafeMutableBufferPointer<Stop>
  private var count = 0
  private var isOnHeap = false

  /// `memory` is uninitialised, and outlives the path.
  init(in memory: UnsafeMutableBufferPointer<Stop>) {
    stops = memory
  }

  deinit {
    stops.extracting(..<count).deinitialize()
    if isOnHeap { stops.deallocate() }
  }

  mutating func append(_ stop: consuming Stop) {
    if count == stops.count { grow() }
    stops.initializeElement(at: count, to: stop)
    count += 1
  }

  private mutating func grow() {
    let larger = UnsafeMutableBufferPointer<Stop>.allocate(capacity: 2 * stops.count)
    _ = larger.moveInitialize(fromContentsOf: stops)
    if isOnHeap { stops.deallocate() }
    stops = larger
    isOnHeap = true
  }

  /// Asks one after the other until one stops the event.
  borrowing func offer(_ emission: Emission) -> EventInterception {
    for index in 0..<count where stops[index].offer(emission) == .handled { return .handled }
    return .pass
  }
}
