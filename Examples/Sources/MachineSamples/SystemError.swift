// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Exported, so that the whole example sees the functions of the system.
#if canImport(Darwin)
  @_exported import Darwin
#elseif canImport(Glibc)
  @_exported import Glibc
#elseif canImport(Musl)
  @_exported import Musl
#endif

/// A system call that failed on a file.
package struct SystemError: Error, CustomStringConvertible {
  package let description: String

  /// Describes the failure by `errno`, right after the call.
  package init(_ action: String, _ path: String, hint: String = "") {
    let reason = String(cString: strerror(errno))
    description = "cannot \(action) \(path): \(reason).\(hint)"
  }
}
