// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import MachineSamples

/// The signals that ask the program to end. They are blocked, and the loop checks for them once a frame: so
/// no code interrupts another, and the terminal is restored as after every run.
enum Signals {
  /// The signal of Ctrl-C.
  static let interrupt = SIGINT
  private static let asking = [SIGINT, SIGTERM, SIGHUP]

  /// Blocks the signals on the calling thread and on threads that it makes from now on.
  static func block() {
    var set = self.set
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  static func unblock() {
    var set = self.set
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  /// Takes a pending signal; nil if there is none.
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
