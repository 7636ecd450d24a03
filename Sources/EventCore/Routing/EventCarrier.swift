// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What travels with the events of a central beside them, such as the context of a trace: it is taken where an event is
/// dispatched, and is there again while its handlers run. A central has its carrier, or none, for life.
///
/// The value lies behind the event in its payload, so neither core knows of it: `CarryingRouter` puts it there, and
/// `EventTypeActions.carrying` takes it out. Centrals without a carrier pay nothing.
package struct EventCarrier: Sendable {
  package typealias Value = AnyObject & Sendable

  /// Returns the value of the calling thread or task. Runs inside a dispatch: it neither dispatches nor waits.
  var capture: @Sendable () -> (any Value)?
  /// Runs a closure with a value, or without any if that is nil, even if the thread or task has one of its own. It is
  /// told the type of the event for whose handlers it does so; nil for a closure that runs somewhere.
  let restore: @Sendable (_ value: (any Value)?, _ type: (any Eventable.Type)?, _ body: () -> Void) -> Void
  /// The same for the handler of an `async` listener.
  let restoreInTask:
    @Sendable (_ value: (any Value)?, _ type: any Eventable.Type, _ body: () async -> Void) async -> Void
  /// Notes what the handler of an `async` listener threw. Runs inside `restoreInTask`, in the same task.
  let noteFailure: @Sendable (_ error: any Error) -> Void
  /// Returns what other machines have to know of a value, as texts with names.
  let inject: @Sendable (_ value: any Value) -> [String: String]
  /// Makes a value of such texts, which other texts may be among; nil if they say nothing.
  let extract: @Sendable (_ fields: [String: String]) -> (any Value)?

  package init(
    capture: @escaping @Sendable () -> (any Value)?,
    restore: @escaping @Sendable ((any Value)?, (any Eventable.Type)?, () -> Void) -> Void,
    restoreInTask: @escaping @Sendable ((any Value)?, any Eventable.Type, () async -> Void) async -> Void,
    noteFailure: @escaping @Sendable (any Error) -> Void = { _ in },
    inject: @escaping @Sendable (any Value) -> [String: String] = { _ in [:] },
    extract: @escaping @Sendable ([String: String]) -> (any Value)? = { _ in nil }
  ) {
    self.capture = capture
    self.restore = restore
    self.restoreInTask = restoreInTask
    self.noteFailure = noteFailure
    self.inject = inject
    self.extract = extract
  }
}

/// Where the value of a carrier lies in the payload of an event.
struct CarriedLayout: Sendable {
  /// Behind the event, whose size this rounds up.
  let offset: Int
  /// What the payload needs.
  var size: Int { offset + MemoryLayout<UInt>.size }
  static let alignment = MemoryLayout<UInt>.alignment

  /// - Parameter size: That of the event.
  init(behind size: Int) {
    offset = (size + Self.alignment - 1) / Self.alignment * Self.alignment
  }

  /// Puts a value behind an event, which the payload then retains.
  func put(_ value: (any EventCarrier.Value)?, in payload: UnsafeMutableRawPointer) {
    let address = value.map { UInt(bitPattern: Unmanaged.passRetained($0 as AnyObject).toOpaque()) } ?? 0
    payload.storeBytes(of: address, toByteOffset: offset, as: UInt.self)
  }

  /// The value behind an event. The payload goes on retaining it.
  func value(in payload: UnsafeMutableRawPointer) -> (any EventCarrier.Value)? {
    // `put` has taken it from a reference of this type.
    reference(in: payload).map { unsafeBitCast($0.takeUnretainedValue(), to: (any EventCarrier.Value).self) }
  }

  /// Releases the value behind an event.
  func drop(in payload: UnsafeMutableRawPointer) {
    reference(in: payload)?.release()
  }

  private func reference(in payload: UnsafeMutableRawPointer) -> Unmanaged<AnyObject>? {
    UnsafeRawPointer(bitPattern: payload.load(fromByteOffset: offset, as: UInt.self)).map { .fromOpaque($0) }
  }
}

/// The value that came with the event which a task has taken last. The iterator of a sequence alone uses it.
final class TakenValue: @unchecked Sendable {
  var value: (any EventCarrier.Value)?
}
