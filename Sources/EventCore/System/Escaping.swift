// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

extension String {
  /// The text with some signs replaced, and without other control characters and separators of lines, which would break
  /// a line or a terminal's page: by Unicode scalar, since a sign below an accent is no `Character` of its own.
  func escaped(_ replacements: [Unicode.Scalar: String]) -> String {
    var text = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if let replacement = replacements[scalar] {
        text += replacement.unicodeScalars
      } else if ![.control, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory) {
        text.append(scalar)
      }
    }
    return String(text)
  }
}
