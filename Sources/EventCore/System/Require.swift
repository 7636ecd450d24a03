// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Ends the program with a sentence if a caller has broken a rule (D12).
///
/// It stands where `precondition` would: an optimised build keeps that one's check and leaves out
/// what it says, and `-Ounchecked` leaves out the condition too, with whatever it does.
///
/// - Parameters:
///   - holds: Whether the rule was kept. Always evaluated.
///   - sentence: The rule, what was found, and what to do. Evaluated only if it was broken.
@inlinable
@inline(__always)
package func require(
  _ holds: Bool, _ sentence: @autoclosure () -> String,
  file: StaticString = #fileID, line: UInt = #line
) {
  guard _fastPath(holds) else { refuse(sentence(), file: file, line: line) }
}

/// Apart, so that a caller has no more than a jump to it among its own lines.
@inline(never)
@usableFromInline
package func refuse(_ sentence: String, file: StaticString, line: UInt) -> Never {
  fatalError(sentence, file: file, line: line)
}
