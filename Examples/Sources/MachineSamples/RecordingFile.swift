// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension Recording {
  /// Reads a recording from a file.
  package static func read(_ path: String) throws -> [Sample] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemError("open", path) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    while true {
      let piece = try [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
        let got = readOnce(descriptor, buffer.baseAddress!, buffer.count)
        guard got >= 0 else { throw SystemError("read", path) }
        count = got
      }
      guard !piece.isEmpty else { break }
      bytes.append(contentsOf: piece)
    }
    return try parse(bytes, file: path)
  }

  /// Reads a recording from memory. `file` is its name in errors.
  package static func parse(_ bytes: [UInt8], file: String) throws -> [Sample] {
    try bytes.withUnsafeBytes { buffer in
      var parser = RecordingParser(file: file, text: ByteScanner(buffer))
      return try parser.samples()
    }
  }
}

/// Writes a recording.
///
/// **Threads**: one at a time.
package final class RecordingWriter {
  private let path: String
  private let descriptor: Int32
  private var text = ""
  private var count = 0

  /// Creates the file, or empties it.
  package init(_ path: String) throws {
    self.path = path
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw SystemError("create", path) }
    text = Recording.header + "\n"
  }

  deinit {
    close(descriptor)
  }

  package func append(_ samples: [Sample]) throws {
    for sample in samples {
      text += sample.recordingLine
    }
    count += samples.count
    if text.utf8.count > 1 << 16 { try flush() }
  }

  /// Writes the last line, without which the file counts as truncated.
  package func finish() throws {
    text += "end \(count)\n"
    try flush()
  }

  private func flush() throws {
    try text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let start = rest.baseAddress, !rest.isEmpty {
        let written = write(descriptor, start, rest.count)
        if written < 0 {
          if errno == EINTR { continue }
          throw SystemError("write", path)
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[written...])
      }
    }
    text.removeAll(keepingCapacity: true)
  }
}

extension Sample {
  /// The sample as a line of a recording.
  var recordingLine: String {
    switch self {
    case .cpu(let e): "cpu \(e.time) \(e.index) \(e.busy) \(e.total)\n"
    case .memory(let e): "memory \(e.time) \(e.total) \(e.available) \(e.dirty)\n"
    case .interrupts(let e): "interrupts \(e.time) \(e.hard) \(e.soft)\n"
    case .switches(let e):
      "switches \(e.time) \(e.switches) \(e.forks) \(e.running) \(e.blocked)\n"
    case .network(let e): "network \(e.time) \(e.receivedBytes) \(e.sentBytes) \(e.packets)\n"
    case .disk(let e): "disk \(e.time) \(e.readBytes) \(e.writtenBytes) \(e.operations)\n"
    }
  }
}

/// Reads, and repeats that after an interruption. Outside of `Recording`, whose `read` hides the system's.
private func readOnce(_ descriptor: Int32, _ start: UnsafeMutableRawPointer, _ count: Int) -> Int {
  while true {
    let got = read(descriptor, start, count)
    if got >= 0 || errno != EINTR { return got }
  }
}
