// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Testing

/// Checks that a process that trapped has written these words (D12), in an optimised build as well.
public func expectMessage(
  _ result: ExitTest.Result?, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
) {
  let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  #expect(text.contains(words), "the message was: \(text)", sourceLocation: sourceLocation)
}
