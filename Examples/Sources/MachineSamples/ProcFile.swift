// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// One file of `/proc`, which stays open: each read gets new figures from the kernel, in the same buffer.
///
/// **Threads**: one at a time.
package final class ProcFile {
  private let path: String
  private let descriptor: Int32
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 8192, alignment: 64)

  package init(_ path: String) throws {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw SystemError(
        "open", path,
        hint: " Live samples need Linux and its /proc; elsewhere replay a recording with --input.")
    }
  }

  deinit {
    close(descriptor)
    buffer.deallocate()
  }

  /// Reads the file, and gives its text to a closure.
  package func read<Result>(_ body: (inout ByteScanner) -> Result) throws -> Result {
    var length = 0
    // The kernel returns some files page by page: only an empty read means the end.
    while true {
      if length == buffer.count { grow() }
      let count = pread(
        descriptor, buffer.baseAddress! + length, buffer.count - length, off_t(length))
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemError("read", path)
      }
      length += count
    }
    var scanner = ByteScanner(UnsafeRawBufferPointer(rebasing: buffer[..<length]))
    return body(&scanner)
  }

  private func grow() {
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: buffer.count * 2, alignment: 64)
    larger.copyMemory(from: UnsafeRawBufferPointer(buffer))
    buffer.deallocate()
    buffer = larger
  }
}
