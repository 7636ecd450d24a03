// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Says which two of these options name the same file, of which one would replace what the other reads or writes.
/// Nil if no two do.
package func refusal(ofFiles options: KeyValuePairs<String, String?>) -> String? {
  let files = options.compactMap { name, path in path.map { (name: name, path: $0, file: file(at: $0)) } }
  for (index, first) in files.enumerated() {
    for second in files[(index + 1)...] where second.file == first.file {
      let names = "\(first.name) and \(second.name)"
      return "\(names) name one file, \(second.path), which one of them replaces: name two files."
    }
  }
  return nil
}

/// Where a path leads, whether there is a file or not.
private func file(at path: String) -> URL {
  let url = URL(filePath: path).standardizedFileURL
  return url.deletingLastPathComponent().resolvingSymlinksInPath().appending(path: url.lastPathComponent)
    .resolvingSymlinksInPath()
}
