// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A call of the system that failed on a file, as a sentence.
package struct SystemError: Error, CustomStringConvertible {
  package let description: String

  /// Takes the reason from `errno`: to be made right after the call.
  package init(_ action: String, _ path: String, hint: String = "") {
    let reason = String(cString: strerror(errno))
    description = "cannot \(action) \(path): \(reason).\(hint)"
  }
}
