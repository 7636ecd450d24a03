// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

/// The observers of one list that are of one type, in order, with the result of the cast kept.
///
/// A cast to a protocol costs more than the rest of a call does, and those who do not conform pay
/// it as well: so it is done once, until the list changes.
///
/// Inlinable as far as a notification goes, since a call of a generic that is not specialised costs
/// several times a call of an observer.
@usableFromInline
final class ObserverView<Observer>: @unchecked Sendable {
  // Constant after the initialiser.

  @usableFromInline let entries: [ObserverEntry]
  /// Whether `observers` holds an entry's cast observer; if not, it is cast for each call.
  @usableFromInline let isKept: [Bool]
  /// The cast observers. They own nothing: each is copied only while its object is held, and never
  /// deinitialised. See `keep`.
  @usableFromInline let observers: UnsafeMutablePointer<Observer>
  /// Whether an observer was gone when the view was made.
  @usableFromInline let sawGone: Bool

  init(_ candidates: [ObserverEntry]) {
    observers = .allocate(capacity: candidates.count)
    var entries: [ObserverEntry] = []
    var isKept: [Bool] = []
    var sawGone = false
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

  /// Calls one observer, unless it was removed. False if it is gone.
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

  /// Has one observer called where it registered. False if it, or that place, is gone.
  @usableFromInline
  func callElsewhere(at index: Int, _ code: @escaping @Sendable (Observer) -> Void) -> Bool {
    entries[index].run { _ = self.call(at: index, code) }
  }

  /// Ends an observer that cannot be called any more.
  @usableFromInline
  func end(at index: Int) {
    entries[index].end()
  }

  // MARK: Keeping a cast without retaining

  /// Whether a value is nothing but one reference to an object: a class, or a protocol that holds
  /// the object in place. Not so a value that bridging made, or the box of an `Error`.
  private static func isReference(_ observer: Observer, to object: AnyObject) -> Bool {
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    return withUnsafeBytes(of: observer) { bytes in
      bytes.count >= MemoryLayout<UInt>.size && bytes.load(as: UInt.self) == address
    } && type(of: observer as Any) == type(of: object)
  }

  /// Stores a value that is one reference, and gives back the retain that storing it took. What
  /// else such a value holds are pointers to static tables; copying it retains the object, which
  /// its reader holds. So the memory needs the object only while somebody reads, and must not be
  /// deinitialised.
  private static func keep(
    _ observer: Observer, of object: AnyObject, in memory: UnsafeMutablePointer<Observer>
  ) {
    memory.initialize(to: observer)
    Unmanaged.passUnretained(object).release()
  }
}
