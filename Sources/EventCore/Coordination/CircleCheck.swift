// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Notices a chain that leads back (Brent 1980: the mark moves up at every power of two, so that a
/// circle comes back to it, in constant memory).
struct CircleCheck {
  /// Held, since the address of an object that is gone may be another's.
  private var mark: any EventResponder
  private var steps = 0
  /// Most chains are shorter, and never move the mark.
  private var limit = 64

  init(from origin: any EventResponder) {
    mark = origin
  }

  @inline(__always)
  mutating func step(to next: any EventResponder) {
    steps += 1
    if steps == limit || next === mark { stop(at: next) }
  }

  /// Out of line, since code beside the loop that copies `next` makes the loop copy it, too.
  @inline(never)
  private mutating func stop(at next: any EventResponder) {
    require(
      next !== mark,
      """
      A chain of responders ends at the top; this one leads from one of type \(type(of: next)) \
      back to itself, in \(steps) \(steps == 1 ? "step" : "steps"): have the nextResponder of the \
      top return nil.
      """)
    mark = next
    steps = 0
    limit *= 2
  }
}
