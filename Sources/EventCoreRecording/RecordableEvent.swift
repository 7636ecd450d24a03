// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// A `Codable` event that can be recorded, with a name by which files know its type.
public protocol RecordableEvent: Eventable, Codable {
  /// The name of the type in files: by default the type's own, without those of the module and of the types around it.
  ///
  /// Give a name if two types of one recording are called the same, or before you rename a type of which there
  /// are files. It is asked for when a recorder is made and when a file is read, not for each event.
  static var recordingName: String { get }
}

extension RecordableEvent {
  public static var recordingName: String { String(describing: Self.self) }
}

/// The names of some types, in their order. Traps if there is none, or if two have the same.
func recordingNames(of types: [any RecordableEvent.Type]) -> [String] {
  require(
    !types.isEmpty,
    """
    A recording has events of the types that are passed for it, and these are none: pass at least one, such as \
    of: [Input.self].
    """)
  let names = types.map { $0.recordingName }
  let doubled = Dictionary(grouping: types.indices) { names[$0] }.first { $0.value.count > 1 }
  require(
    doubled == nil,
    """
    The types of a recording have names that differ, and \(doubled?.value.map { String(reflecting: types[$0]) } ?? []) \
    are all called "\(doubled?.key ?? "")": give each a recordingName of its own, and pass it once.
    """)
  return names
}
