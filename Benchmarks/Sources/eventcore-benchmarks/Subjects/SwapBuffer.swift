// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// A growing array for one writer at a time, without checks: what one writes by hand for a hot
/// path.
struct SwapBuffer<Element> {
  private var base: UnsafeMutablePointer<Element>
  private var capacity: Int
  private(set) var count = 0

  init(capacity: Int) {
    base = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  var isEmpty: Bool { count == 0 }

  @inline(__always)
  mutating func append(_ element: consuming Element) {
    if count == capacity {
      grow()
    }
    (base + count).initialize(to: element)
    count &+= 1
  }

  @inline(never)
  private mutating func grow() {
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
    larger.moveInitialize(from: base, count: count)
    base.deallocate()
    base = larger
    capacity *= 2
  }

  subscript(index: Int) -> Element {
    @inline(__always) get { base[index] }
  }

  mutating func removeAll() {
    base.deinitialize(count: count)
    count = 0
  }

  mutating func free() {
    removeAll()
    base.deallocate()
  }
}
