// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Cells that a walk of the locking core is to call, pinned, each beside its object and beside
/// whether its node was taken away: arrays that the walking thread reads without the lock, so that
/// they stay where they are while it does.
struct LockingCellBuffer: ~Copyable {
  private(set) var cells: UnsafeMutablePointer<UnsafeMutableRawPointer>
  private(set) var objects: UnsafeMutablePointer<UnsafeRawPointer>
  /// Of each cell: its node is not where it was when the walk began. Written by the walking thread
  /// alone.
  private(set) var isCut: UnsafeMutablePointer<Bool>
  private(set) var count = 0
  private var capacity = 16

  init() {
    cells = .allocate(capacity: capacity)
    objects = .allocate(capacity: capacity)
    isCut = .allocate(capacity: capacity)
  }

  deinit {
    cells.deallocate()
    objects.deallocate()
    isCut.deallocate()
  }

  mutating func append(_ cell: LockingCellPointer) {
    if count == capacity { grow() }
    cells[count] = UnsafeMutableRawPointer(cell)
    objects[count] = treeObject(of: UnsafeMutableRawPointer(cell))
    (isCut + count).initialize(to: false)
    count += 1
    cell.links.pointee.pins += 1
  }

  /// Turns the order of all of them round.
  func reverse() {
    var foundCells = UnsafeMutableBufferPointer(start: cells, count: count)
    foundCells.reverse()
    var foundObjects = UnsafeMutableBufferPointer(start: objects, count: count)
    foundObjects.reverse()
  }

  /// Takes cells back that were to be called. `unused` is told those that nobody needs any more.
  func unpin(_ range: Range<Int>, _ unused: (LockingCellPointer) -> Void) {
    for index in range {
      let cell = cells[index].assumingMemoryBound(to: LockingTreeCell.self)
      cell.links.pointee.pins -= 1
      if cell.links.pointee.pins == 0, !cell.links.pointee.isListed { unused(cell) }
    }
  }

  /// After `unpin` of all.
  mutating func removeAll() { count = 0 }

  private mutating func grow() {
    cells = grown(cells)
    objects = grown(objects)
    isCut = grown(isCut)
    capacity *= 2
  }

  private func grown<T>(_ old: UnsafeMutablePointer<T>) -> UnsafeMutablePointer<T> {
    let larger = UnsafeMutablePointer<T>.allocate(capacity: capacity * 2)
    larger.moveInitialize(from: old, count: count)
    old.deallocate()
    return larger
  }
}
