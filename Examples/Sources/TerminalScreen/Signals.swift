// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Exported, so that the programs see the functions of the system.
#if canImport(Darwin)
  @_exported import Darwin
#elseif canImport(Glibc)
  @_exported import Glibc
#elseif canImport(Musl)
  @_exported import Musl
#endif

/// The signals that ask a program to end. They are blocked, and its loop asks for them once a frame: so no code
/// interrupts another, and the terminal is restored as after every run.
package enum Signals {
  /// Blocks the signals on the calling thread and on threads that it makes from now on.
  package static func block() { change(SIG_BLOCK) }
  package static func unblock() { change(SIG_UNBLOCK) }

  /// Takes a signal that has come; nil if none has.
  package static func take() -> Int32? {
    var pending = sigset_t()
    sigpending(&pending)
    guard asking.contains(where: { sigismember(&pending, $0) == 1 }) else { return nil }
    var set = self.set
    var signal: Int32 = 0
    return sigwait(&set, &signal) == 0 ? signal : nil
  }

  private static let asking = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  private static var set: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in asking { sigaddset(&set, signal) }
    return set
  }

  private static func change(_ how: Int32) {
    var set = self.set
    pthread_sigmask(how, &set, nil)
  }
}
