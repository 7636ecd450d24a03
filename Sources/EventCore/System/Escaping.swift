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

  /// The text of a box for Mermaid. Its grammar has no empty text, so a blank stands for one.
  var mermaidLabel: String {
    let text = escaped(mermaidEntities)
    return text.isEmpty ? " " : text
  }

  /// The text of a box for Graphviz, which reads a backslash as the beginning of an escape, and "&" as that of an entity.
  var graphvizLabel: String { escaped(["\\": "\\\\", "\"": "\\\"", "&": "&amp;", "\n": "\\n"]) }
}

/// Labels of Mermaid are HTML, in which entities are written with "#". Of ASCII only letters, digits and blanks stay as
/// they are: Mermaid also reads styles, icons, formulas and, in some versions, Markdown there.
private let mermaidEntities: [Unicode.Scalar: String] = {
  var entities: [Unicode.Scalar: String] = ["\n": "<br/>"]
  for value in UInt8(ascii: "!")...UInt8(ascii: "~") {
    let sign = Character(Unicode.Scalar(value))
    if !sign.isLetter && !sign.isNumber { entities[Unicode.Scalar(value)] = "#\(value);" }
  }
  return entities
}()
