// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Ends the program with a sentence if a run did not do what it should. A precondition would end
/// optimised builds, as all of these are, without a word.
@inline(__always)
func check(_ holds: Bool, _ message: @autoclosure () -> String) {
  if !holds { fatalError(message()) }
}
