// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// What Signposts.swift needs of the module os, declared as its interface has it. It keeps what was posted.

/// What was posted, in order. The stand-in for Instruments.
public nonisolated(unsafe) var posted: [String] = []
// Safe, since osUse.swift has one thread, which posts and reads.

public struct OSLogPrivacy: Sendable {
  public static var auto: OSLogPrivacy { OSLogPrivacy() }
  public static var `public`: OSLogPrivacy { OSLogPrivacy() }
}

public struct OSLogInterpolation: StringInterpolationProtocol {
  var text = ""
  public init(literalCapacity: Int, interpolationCount: Int) {}
  public mutating func appendLiteral(_ literal: String) { text += literal }
  public mutating func appendInterpolation(
    _ argumentString: @autoclosure @escaping () -> String, privacy: OSLogPrivacy = .auto
  ) { text += argumentString() }
  public mutating func appendInterpolation<T: FixedWidthInteger>(
    _ number: @autoclosure @escaping () -> T, privacy: OSLogPrivacy = .auto
  ) { text += "\(number())" }
}

public struct SignpostMetadata: ExpressibleByStringInterpolation {
  let text: String
  public init(stringLiteral value: String) { text = value }
  public init(stringInterpolation: OSLogInterpolation) { text = stringInterpolation.text }
}

public struct OSSignpostID: Sendable {
  public static var exclusive: OSSignpostID { OSSignpostID() }
}

public final class OSSignpostIntervalState: Sendable {
  init() {}
}

public struct OSSignposter: Sendable {
  public init(subsystem: String, category: String) {}
  public var isEnabled: Bool { true }
  public func makeSignpostID() -> OSSignpostID { .exclusive }

  public func emitEvent(_ name: StaticString, id: OSSignpostID = .exclusive, _ message: SignpostMetadata) {
    posted.append("\(name): \(message.text)")
  }

  public func beginInterval(
    _ name: StaticString, id: OSSignpostID = .exclusive, _ message: SignpostMetadata
  ) -> OSSignpostIntervalState {
    posted.append("\(name) begins: \(message.text)")
    return OSSignpostIntervalState()
  }

  public func endInterval(_ name: StaticString, _ state: OSSignpostIntervalState) {
    posted.append("\(name) ends")
  }
}
