// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The signals that ask the program to end, taken by looking for them once a frame.
///
/// They are blocked and not handled: no code runs at a moment that nobody chose, and the terminal
/// is restored on the way that every run takes.
enum Signals {
  /// What Ctrl-C stands for.
  static let interrupt = SIGINT
  private static let asking = [SIGINT, SIGTERM, SIGHUP]

  /// For the calling thread and all that it makes from now on.
  static func block() {
    var set = self.set
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  static func unblock() {
    var set = self.set
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  /// Takes a signal that has come; nil if none has.
  static func take() -> Int32? {
    var pending = sigset_t()
    sigpending(&pending)
    guard asking.contains(where: { sigismember(&pending, $0) == 1 }) else { return nil }
    var set = self.set
    var signal: Int32 = 0
    return sigwait(&set, &signal) == 0 ? signal : nil
  }

  private static var set: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in asking {
      sigaddset(&set, signal)
    }
    return set
  }
}
