// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// Those observers of a list that have one type, in order, with the results of the casts.
///
/// A cast to a protocol costs more than the rest of a call, also for objects that do not conform: so each
/// object is cast once, until the list changes.
///
/// What a notification uses is inlinable, since a call of a generic that is not specialised costs several
/// times a call of an observer.
@usableFromInline
final class ObserverView<Observer>: @unchecked Sendable {
  // Constant after the initialiser.

  @usableFromInline let entries: [ObserverEntry]
  /// Whether `observers` has the cast observer of an entry; otherwise it is cast for each call.
  @usableFromInline let isKept: [Bool]
  /// The cast observers, which own no references: each is read only while its object is retained, and never
  /// deinitialised. See `keep`.
  @usableFromInline let observers: UnsafeMutablePointer<Observer>
  /// Whether the group had entries to sweep when the view was made.
  @usableFromInline let sawGone: Bool

  /// - Parameter sawGone: Whether there are entries to sweep besides those of observers that have ended.
  init(_ candidates: [ObserverEntry], sawGone hasOthers: Bool) {
    observers = .allocate(capacity: candidates.count)
    var entries: [ObserverEntry] = []
    var isKept: [Bool] = []
    var sawGone = hasOthers
    for entry in candidates {
      guard let object = entry.observer else {
        sawGone = true
        continue
      }
      guard let observer = object as? Observer else { continue }
      isKept.append(Self.isReference(observer, to: object))
      if isKept[entries.count] {
        Self.keep(observer, of: object, in: observers + entries.count)
      }
      entries.append(entry)
    }
    self.entries = entries
    self.isKept = isKept
    self.sawGone = sawGone
  }

  deinit {
    observers.deallocate()
  }

  /// Calls one observer, unless it was removed. False if it has ended.
  @inlinable
  func call(at index: Int, _ code: (Observer) -> Void) -> Bool {
    let entry = entries[index]
    guard let object = entry.observer else { return false }
    guard !entry.isEnded else { return true }
    withExtendedLifetime(object) {
      if isKept[index] {
        code(observers[index])
      } else if let observer = object as? Observer {
        code(observer)
      }
    }
    return true
  }

  /// Calls one observer in its place. False if the observer or the place has ended.
  @usableFromInline
  func callElsewhere(at index: Int, _ code: @escaping @Sendable (Observer) -> Void) -> Bool {
    entries[index].run { _ = self.call(at: index, code) }
  }

  /// Ends an observer that could not be called in its place.
  @usableFromInline
  func end(at index: Int) {
    entries[index].endUncalled()
  }

  // MARK: Keeping a cast without retaining

  /// Whether a value is just one reference to the object, with pointers to static tables if its type is a
  /// protocol. A value that bridging has made and the box of an `Error` are not.
  private static func isReference(_ observer: Observer, to object: AnyObject) -> Bool {
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    return withUnsafeBytes(of: observer) { bytes in
      bytes.count >= MemoryLayout<UInt>.size && bytes.load(as: UInt.self) == address
    } && type(of: observer as Any) == type(of: object)
  }

  /// Stores a value that is one reference, and takes back the retain of the copy. A reader copies the value
  /// while it retains the object. So the memory needs no reference, and must not be deinitialised.
  private static func keep(
    _ observer: Observer, of object: AnyObject, in memory: UnsafeMutablePointer<Observer>
  ) {
    memory.initialize(to: observer)
    Unmanaged.passUnretained(object).release()
  }
}
