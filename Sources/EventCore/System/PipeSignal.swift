// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Runs a closure that writes to a file. If that is a pipe which nobody reads any more, the write fails, and the process
/// does not end by `SIGPIPE`.
///
/// - Parameter file: The descriptor to which it writes.
///
/// **Threads**: any.
package func withoutPipeSignal<Result, Failure: Error>(
  of file: Int32, _ body: () throws(Failure) -> Result
) throws(Failure) -> Result {
  #if canImport(Darwin)
    // There the signal goes to the process, whichever thread writes.
    _ = fcntl(file, F_SETNOSIGPIPE, 1)
    return try body()
  #else
    // It goes to the thread that writes, where it is blocked meanwhile, and taken out before it is unblocked.
    var (signal, before, pending) = (sigset_t(), sigset_t(), sigset_t())
    sigemptyset(&signal)
    sigaddset(&signal, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signal, &before)
    sigpending(&pending)
    let wasPending = sigismember(&pending, SIGPIPE) == 1
    defer {
      // Without waiting: another thread may have taken one that was the process's.
      var none = timespec()
      if !wasPending { while sigtimedwait(&signal, nil, &none) < 0, errno == EINTR {} }
      pthread_sigmask(SIG_SETMASK, &before, nil)
    }
    return try body()
  #endif
}
