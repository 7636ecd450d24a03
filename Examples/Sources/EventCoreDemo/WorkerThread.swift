// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import MachineSamples

/// A thread that runs one closure, and can be joined.
final class WorkerThread {
  private let thread: pthread_t

  init(_ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(Start(body)).toOpaque()
    #if canImport(Darwin)
      var thread: pthread_t?
      let status = pthread_create(&thread, nil, { Start.run($0) }, start)
      precondition(status == 0, "pthread_create failed with error \(status)")
      self.thread = thread!
    #else
      var thread = pthread_t()
      let status = pthread_create(&thread, nil, { Start.run($0!) }, start)
      precondition(status == 0, "pthread_create failed with error \(status)")
      self.thread = thread
    #endif
  }

  /// Waits for the end of the closure. To be called once.
  func join() {
    let status = pthread_join(thread, nil)
    precondition(status == 0, "pthread_join failed with error \(status)")
  }

  private final class Start: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
      self.body = body
    }

    static func run(_ start: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
      Unmanaged<Start>.fromOpaque(start).takeRetainedValue().body()
      return nil
    }
  }
}
