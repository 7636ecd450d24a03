// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

#if os(Linux)
  /// The names of the process's threads, but for those that run tasks, which have the name of the process or of one of
  /// Dispatch's own queues.
  public func threadNames() -> [String] {
    let own = nameOfThread("/proc/self")
    // A thread that has ended since has no name.
    return threadFolders().map(nameOfThread).filter { $0 != "" && $0 != own && !$0.contains("-qos") }
  }

  /// How much processor time a thread of the process has used, which has this name; nil if none has.
  public func processorTime(ofThread name: String) -> Duration? {
    guard let folder = threadFolders().first(where: { nameOfThread($0) == name }) else { return nil }
    // User and system time in ticks: the 14th and the 15th field. The name, in brackets, is the second.
    let fields = textOfFile("\(folder)/stat").drop { $0 != ")" }.split(separator: " ")
    guard fields.count > 13, let user = Int(fields[12]), let system = Int(fields[13]) else { return nil }
    return .milliseconds((user + system) * 1000 / sysconf(Int32(_SC_CLK_TCK)))
  }

  private func threadFolders() -> [String] {
    guard let folder = opendir("/proc/self/task") else { return [] }
    defer { closedir(folder) }
    var numbers: [String] = []
    while let entry = readdir(folder) {
      numbers.append(
        withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    return numbers.filter { !$0.hasPrefix(".") }.map { "/proc/self/task/\($0)" }
  }

  private func nameOfThread(_ folder: String) -> String { String(textOfFile("\(folder)/comm").prefix { $0 != "\n" }) }

  private func textOfFile(_ path: String) -> String {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 1024)
    let count = read(file, &text, text.count)
    return String(decoding: text.prefix(max(0, count)), as: UTF8.self)
  }
#endif
