// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation
import StatisticsSocket

/// A run of the program without a terminal.
final class TopOnPipes {
  struct Failure: Error { let description: String }

  struct End: Equatable {
    var status: Int32
    var errors: String
  }

  private let process = Process()
  private let (output, errors) = (Pipe(), Pipe())
  private var buffer = Data()

  /// - Parameter file: Where its output goes, if not into the pipe.
  init(_ arguments: [String], output file: FileHandle? = nil) throws {
    #if canImport(Darwin)
      // The tests are within a bundle, beside which the programs are.
      let folder = Bundle(for: TopOnPipes.self).bundleURL.deletingLastPathComponent()
    #else
      let folder = Bundle.main.executableURL!.deletingLastPathComponent()
    #endif
    process.executableURL = folder.appending(path: "eventcore-top")
    process.arguments = arguments
    process.standardOutput = file ?? output
    process.standardError = errors
    try process.run()
  }

  deinit {
    // No other signal: a thread of Dispatch, which may have started it, blocks them, and it inherits that.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }

  /// The next line of its output, without its end; nil when it has closed it.
  func line() throws -> Data? {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer = Data(buffer[(end + 1)...]) }
        return Data(buffer[..<end])
      }
      let part = try read(output)
      guard !part.isEmpty else {
        guard !buffer.isEmpty else { return nil }
        throw Failure(description: "it ended within a line: \(String(decoding: buffer, as: UTF8.self))")
      }
      buffer += part
    }
  }

  func frame() throws -> Frame {
    guard let line = try line() else { throw Failure(description: "it ended before a frame came: \(try end())") }
    return try JSONDecoder().decode(Frame.self, from: line)
  }

  /// Waits for its end. Read its output before.
  func end() throws -> End {
    var text = Data()
    while case let part = try read(errors), !part.isEmpty { text += part }
    process.waitUntilExit()
    return End(
      // A signal that was not caught has its own number.
      status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      errors: String(decoding: text, as: UTF8.self))
  }

  /// What there is to read; nothing at the end.
  private func read(_ pipe: Pipe) throws -> Data {
    var polled = pollfd(fd: pipe.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&polled, 1, 20_000) > 0 else { throw Failure(description: "neither output nor the end came") }
    return pipe.fileHandleForReading.availableData
  }
}
