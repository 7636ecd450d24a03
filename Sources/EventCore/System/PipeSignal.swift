// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Runs a closure in which a write to a pipe that nobody reads fails, and does not end the process by `SIGPIPE`.
///
/// The signal goes to the thread that writes: there it is blocked meanwhile, and taken out before it is unblocked.
///
/// **Threads**: any.
package func withoutPipeSignal<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
  var (signal, before) = (sigset_t(), sigset_t())
  sigemptyset(&signal)
  sigaddset(&signal, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signal, &before)
  let wasPending = isPipeSignalPending
  defer {
    if !wasPending, isPipeSignalPending {
      var taken: Int32 = 0
      sigwait(&signal, &taken)
    }
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }
  return try body()
}

private var isPipeSignalPending: Bool {
  var pending = sigset_t()
  sigpending(&pending)
  return sigismember(&pending, SIGPIPE) == 1
}
