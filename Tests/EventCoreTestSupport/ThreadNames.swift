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
    guard let folder = opendir("/proc/self/task") else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let number = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      // A thread that has ended since is none.
      if !number.hasPrefix("."), case let name = nameOfThread("/proc/self/task/\(number)/comm"), name != "" {
        names.append(name)
      }
    }
    let own = nameOfThread("/proc/self/comm")
    return names.filter { $0 != own && !$0.contains("-qos") }
  }

  private func nameOfThread(_ path: String) -> String {
    let file = open(path, O_RDONLY)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 64)
    let count = read(file, &text, text.count)
    return String(decoding: text.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }
#endif
