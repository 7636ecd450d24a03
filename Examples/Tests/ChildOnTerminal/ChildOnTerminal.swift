// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if os(Linux)
  import Foundation

  /// A run of one of the programs on a pseudo terminal of 80 columns and 24 rows.
  package final class ChildOnTerminal {
    struct Failure: Error { let description: String }

    package private(set) var process: pid_t = 0
    /// The modes of the terminal before the child began.
    package private(set) var before: [tcflag_t] = []
    private var ours: Int32
    /// Open until the end: when the last one closes its side, the system forgets the modes.
    private let theirs: Int32
    /// Is closed when the child has ended, whose end of the pipe is then the last one.
    private let life: Int32
    private var status: Int32?
    private var output = ""

    package init(_ name: String, _ arguments: [String]) throws {
      ours = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
      // Swift does not see `unlockpt` and `ptsname`, which make these two calls (TIOCSPTLCK, TIOCGPTN).
      var (locked, number) = (Int32(0), UInt32(0))
      guard ours >= 0, ioctl(ours, 0x4004_5431, &locked) == 0, ioctl(ours, 0x8004_5430, &number) == 0 else {
        throw Failure(description: "no pseudo terminal: \(String(cString: strerror(errno)))")
      }
      let terminal = "/dev/pts/\(number)"
      theirs = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
      var pipes: [Int32] = [0, 0]
      guard theirs >= 0, pipe(&pipes) == 0 else { throw Failure(description: "no descriptors") }
      for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      life = pipes[0]
      defer { close(pipes[1]) }
      resize(columns: 80, rows: 24)
      before = modes

      var attributes = posix_spawnattr_t()
      posix_spawnattr_init(&attributes)
      // It becomes the leader of a session, and then opens the terminal, which thereby is its controlling one.
      // POSIX_SPAWN_SETSID, which Swift does not see either.
      posix_spawnattr_setflags(&attributes, 0x80)
      var actions = posix_spawn_file_actions_t()
      posix_spawn_file_actions_init(&actions)
      posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, terminal, O_RDWR, 0)
      posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO)
      posix_spawn_file_actions_adddup2(&actions, pipes[1], 3)
      defer {
        posix_spawnattr_destroy(&attributes)
        posix_spawn_file_actions_destroy(&actions)
      }
      let program = Bundle.main.executableURL!.deletingLastPathComponent().appending(path: name).path
      var words = ([program] + arguments).map { strdup($0) } + [nil]
      defer { for word in words { free(word) } }
      let result = posix_spawn(&process, program, &actions, &attributes, &words, environ)
      guard result == 0 else { throw Failure(description: "cannot run \(program): \(String(cString: strerror(result)))") }
    }

    deinit {
      if status == nil {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
      }
      closeTerminal()
      close(theirs)
      close(life)
    }

    /// The modes of the terminal, which a program in it changes.
    package var modes: [tcflag_t] {
      var modes = termios()
      tcgetattr(theirs, &modes)
      return [modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag]
    }

    /// Stops the child, and gives the terminal the modes from before it, as a shell does.
    package func stop() throws {
      kill(process, SIGSTOP)
      guard waitpid(process, nil, WUNTRACED) == process else { throw Failure(description: "the child did not stop") }
      var modes = termios()
      tcgetattr(theirs, &modes)
      (modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag) = (before[0], before[1], before[2], before[3])
      tcsetattr(theirs, TCSANOW, &modes)
    }

    package func resize(columns: UInt16, rows: UInt16) {
      var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
      _ = ioctl(theirs, UInt(TIOCSWINSZ), &size)
    }

    package func type(_ text: String) {
      _ = write(ours, text, text.utf8.count)
    }

    package func closeTerminal() {
      if ours >= 0 { close(ours) }
      ours = -1
    }

    /// Reads what the child writes, until a text has come. Returns what came before it.
    @discardableResult
    package func read(until text: String) throws -> String {
      while !output.contains(text) {
        try wait(for: ours, "the text \(text)")
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Foundation.read(ours, &bytes, bytes.count)
        guard count > 0 else { throw Failure(description: "the terminal was closed before \(text) came") }
        // A character may be cut in two. None of those that are looked for is outside of ASCII.
        output += String(decoding: bytes[..<count], as: UTF8.self)
      }
      let range = output.range(of: text)!
      defer { output.removeSubrange(..<range.upperBound) }
      return String(output[..<range.lowerBound])
    }

    /// From now on the terminal takes nothing of what the child writes.
    package func stopOutput() {
      tcflow(theirs, TCOOFF)
    }

    package func exitStatus() throws -> Int32 {
      try wait(for: life, "the end")
      var result: Int32 = 0
      waitpid(process, &result, 0)
      // A signal that was not caught has its own number.
      let status = result & 0x7F == 0 ? result >> 8 & 0xFF : -(result & 0x7F)
      self.status = status
      return status
    }

    private func wait(for descriptor: Int32, _ what: String) throws {
      var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&polled, 1, 20_000) > 0 else { throw Failure(description: "\(what) did not come; got \(output)") }
    }
  }
#endif
