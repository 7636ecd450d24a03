// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(CSwiftRuntime)
  internal import CSwiftRuntime
#endif

extension MainActor {
  /// Whether the caller is on the MainActor: on the main queue, or inside another queue's `sync` that was called there,
  /// where Dispatch knows the other queue alone.
  static var isCurrent: Bool {
    // First: where other threads than the main one serve the main queue, the runtime knows nothing of its blocks.
    if MainQueue.isCurrent { return true }
    #if canImport(Darwin)
      // The function of the runtime below came with macOS 26.
      return pthread_main_np() != 0
    #elseif canImport(CSwiftRuntime)
      // `UnownedSerialExecutor` is frozen: it will always be these two words.
      let (identity, implementation) = unsafeBitCast(sharedUnownedExecutor, to: (UInt, UInt).self)
      return swift_runtime_is_current_executor(identity, implementation)
    #else
      return false
    #endif
  }
}
