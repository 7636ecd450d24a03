// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// The observers of one list that are of one type, in order, with the result of the cast kept.
///
/// A cast to a protocol costs two to three times what the rest of a call does, and those who do not
/// conform pay it as well: so it is done once, until the list changes.
final class ObserverView<Observer>: @unchecked Sendable {
  // Constant after the initialiser.

  private struct Slot {
    let entry: ObserverEntry
    /// Whether `observers` holds the cast observer; if not, it is cast for each call.
    let isKept: Bool
  }
  private let slots: [Slot]
  /// The cast observers. They own nothing: each is copied only while its object is held, and never
  /// deinitialised. See `keep`.
  private let observers: UnsafeMutablePointer<Observer>
  /// Whether an observer was gone when the view was made.
  let sawGone: Bool

  init(_ entries: [ObserverEntry]) {
    observers = .allocate(capacity: entries.count)
    var slots: [Slot] = []
    var sawGone = false
    for entry in entries {
      guard let object = entry.observer else {
        sawGone = true
        continue
      }
      guard let observer = object as? Observer else { continue }
      let isKept = Self.isReference(observer, to: object)
      if isKept {
        Self.keep(observer, of: object, in: observers + slots.count)
      }
      slots.append(Slot(entry: entry, isKept: isKept))
    }
    self.slots = slots
    self.sawGone = sawGone
  }

  deinit {
    observers.deallocate()
  }

  var count: Int { slots.count }

  /// Where an observer is called.
  func context(at index: Int) -> (any ObserverContext)? { slots[index].entry.context }

  /// Calls one observer, unless it was removed. False if it is gone.
  func call(at index: Int, _ code: (Observer) -> Void) -> Bool {
    let slot = slots[index]
    guard let object = slot.entry.observer else { return false }
    guard !slot.entry.isEnded else { return true }
    withExtendedLifetime(object) {
      if slot.isKept {
        code(observers[index])
      } else if let observer = object as? Observer {
        code(observer)
      }
    }
    return true
  }

  // MARK: Keeping a cast without retaining

  /// Whether a value is nothing but one reference to an object: a class, or a protocol that holds the
  /// object in place. Not so a value that bridging made, or the box of an `Error`.
  private static func isReference(_ observer: Observer, to object: AnyObject) -> Bool {
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    return withUnsafeBytes(of: observer) { bytes in
      bytes.count >= MemoryLayout<UInt>.size && bytes.load(as: UInt.self) == address
    } && type(of: observer as Any) == type(of: object)
  }

  /// Stores a value that is one reference, and gives back the retain that storing it took. What else
  /// such a value holds are pointers to static tables; copying it retains the object, which its reader
  /// holds. So the memory needs the object only while somebody reads, and must not be deinitialised.
  private static func keep(
    _ observer: Observer, of object: AnyObject, in memory: UnsafeMutablePointer<Observer>
  ) {
    memory.initialize(to: observer)
    Unmanaged.passUnretained(object).release()
  }
}
