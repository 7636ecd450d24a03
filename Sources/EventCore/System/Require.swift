// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Ends the program with a message if a caller has broken a rule (D12).
///
/// It is used instead of `precondition`, since optimised builds leave out the message of that, and
/// `-Ounchecked` also leaves out its condition, with its side effects.
///
/// - Parameters:
///   - holds: Whether the rule was kept. Always evaluated.
///   - sentence: The rule, what was found, and what to do. Evaluated only if the rule was broken.
@inlinable
@inline(__always)
package func require(
  _ holds: Bool, _ sentence: @autoclosure () -> String,
  file: StaticString = #fileID, line: UInt = #line
) {
  guard _fastPath(holds) else { refuse(sentence(), file: file, line: line) }
}

/// A function that is not inlined, so that callers of `require` contain only a jump to it.
@inline(never)
@usableFromInline
package func refuse(_ sentence: String, file: StaticString, line: UInt) -> Never {
  fatalError(sentence, file: file, line: line)
}
