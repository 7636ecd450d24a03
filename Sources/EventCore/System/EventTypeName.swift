// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The name of the event type with a key, which is the address of its metadata. It has its module; a private type is
/// named without the file that it is private to.
func eventTypeName(_ key: UInt) -> String {
  let name = String(reflecting: unsafeBitCast(key, to: Any.Type.self))
  // "(unknown context at $7f0012345678)." stands for a file or a function, and differs from run to run.
  var parts = name.split(separator: "(unknown context at ", omittingEmptySubsequences: false)
  for index in parts.indices.dropFirst() {
    parts[index] = parts[index].drop { $0 != ")" }.dropFirst(2)
  }
  return parts.joined()
}
