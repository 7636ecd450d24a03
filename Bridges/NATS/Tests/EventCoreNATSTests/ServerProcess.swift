// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

@testable import EventCoreNATS

/// A server of NATS of the test's own, on a free port of the loopback, with its files in a folder that goes with it.
final class ServerProcess: Sendable {
  /// Its number; nil while it does not run.
  private let process = Locked<pid_t?>(nil)
  private let folder: URL
  private let arguments: [String]
  let port: Int
  var url: String { "nats://127.0.0.1:\(port)" }

  /// - Parameter arguments: Beside those for the port and the files.
  init(_ arguments: [String] = [], configuration: String? = nil) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "eventcore-nats-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var arguments = arguments + ["--addr", "127.0.0.1", "--store_dir", folder.path]
    if let configuration {
      let file = folder.appending(path: "server.conf")
      try Data(configuration.utf8).write(to: file)
      arguments += ["--config", file.path]
    }
    self.arguments = arguments
    // The system chooses the port, which the server writes to a file. It tells nobody, so this looks again and again.
    let first = try Self.start(arguments + ["--port", "-1", "--ports_file_dir", folder.path])
    let file = folder.appending(path: "nats-server_\(first).ports")
    let deadline = Date(timeIntervalSinceNow: 60)
    var port: Int?
    while port == nil, Date() < deadline {
      port = Self.read(file.path).firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) }
      if port == nil { usleep(2000) }
    }
    guard let port else {
      kill(first, SIGKILL)
      throw CocoaError(.executableNotLoadable)
    }
    self.port = port
    process.withLock { $0 = first }
  }

  /// The first bytes of a file that another process may be writing, of which Foundation leaks some.
  private static func read(_ path: String) -> String {
    guard let file = fopen(path, "r") else { return "" }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  private static func start(_ arguments: [String]) throws -> pid_t {
    try spawn(try find("nats-server"), arguments)
  }

  /// The path of a program, where Debian and Homebrew have it: also where only root looks for it.
  static func find(_ program: String) throws -> String {
    let folders = [
      "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/opt/homebrew/opt/openssl/bin", "/opt/homebrew/bin",
      "/usr/bin",
    ]
    guard
      let path = folders.map({ "\($0)/\(program)" }).first(where: FileManager.default.isExecutableFile(atPath:))
    else {
      throw CocoaError(.fileNoSuchFile)
    }
    return path
  }

  /// Starts a program that neither reads nor writes anything here.
  static func spawn(_ path: String, _ arguments: [String]) throws -> pid_t {
    var files = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&files)
    defer { posix_spawn_file_actions_destroy(&files) }
    for descriptor in 0...2 { posix_spawn_file_actions_addopen(&files, Int32(descriptor), "/dev/null", O_RDWR, 0) }
    var words = ([path] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process: pid_t = 0
    guard posix_spawn(&process, path, &files, nil, &words, nil) == 0 else { throw CocoaError(.executableNotLoadable) }
    return process
  }

  deinit {
    stop()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Ends the server at once, as a machine that loses its power.
  func stop() {
    process.withLock {
      guard let running = $0 else { return }
      // Also while it is frozen: one that ran on for a moment could still read, and answer.
      kill(running, SIGKILL)
      waitpid(running, nil, 0)
      $0 = nil
    }
  }

  /// Starts it again on the same port.
  func restart() throws {
    let next = try Self.start(arguments + ["--port", "\(port)"])
    process.withLock { $0 = next }
  }

  /// Neither takes nor gives anything, as behind a cut cable.
  func freeze() {
    process.withLock {
      kill($0!, SIGSTOP)
      // When it has stopped.
      waitpid($0!, nil, WUNTRACED)
    }
  }
  func thaw() { process.withLock { _ = kill($0!, SIGCONT) } }
}
