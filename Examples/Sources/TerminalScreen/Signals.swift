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

/// The signals that ask a program to end, and the one that lets it go on when it was stopped. They are blocked, and its
/// loop asks for them once a frame: so no code interrupts another, and the terminal is restored as after every run.
package enum Signals {
  /// Blocks the signals on the calling thread and on threads that it makes from now on.
  package static func block() { change(SIG_BLOCK) }
  package static func unblock() { change(SIG_UNBLOCK) }

  /// Takes a signal that asks for the end; nil if none has come.
  package static func take() -> Int32? { take(asking) }

  /// Returns whether the program was stopped since the last call, and goes on.
  static func hasContinued() -> Bool { take([SIGCONT]) != nil }

  private static let asking = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  private static func take(_ signals: [Int32]) -> Int32? {
    var pending = sigset_t()
    sigpending(&pending)
    guard signals.contains(where: { sigismember(&pending, $0) == 1 }) else { return nil }
    var set = set(of: signals)
    var signal: Int32 = 0
    return sigwait(&set, &signal) == 0 ? signal : nil
  }

  private static func set(of signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    return set
  }

  private static func change(_ how: Int32) {
    var set = set(of: asking + [SIGCONT])
    pthread_sigmask(how, &set, nil)
  }
}
