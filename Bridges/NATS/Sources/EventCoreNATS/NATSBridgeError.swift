// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS

/// Why the client, or the server, did not do what a bridge asked for.
public struct NATSBridgeError: Error, CustomStringConvertible {
  /// What a program may want to tell apart.
  public enum Reason: Sendable {
    /// No server answered.
    case noServer
    /// The server does not let this client in, or not do that; or the client does not take it for the right one.
    case refused
    /// The bridge was closed.
    case closed
    /// It did not answer in time.
    case timedOut
    /// The server has no such stream, or no JetStream.
    case notFound
    /// An answerer on another machine threw an error, is too busy, or has made an answer that is longer than the server
    /// takes, or than ``NATSBridge/Options/longestMessage`` here.
    case answerFailed
    /// Anything else; the description tells.
    case other
  }

  public let reason: Reason
  /// What was to be done, and what the client says.
  public let description: String

  init(_ reason: Reason, _ description: String) {
    (self.reason, self.description) = (reason, description)
  }

  /// For what has waited.
  static let closed = NATSBridgeError(.closed, "The bridge was closed, or does this no more.")

  /// Throws unless the status is a success. On the thread that has called the client.
  static func check(_ status: natsStatus, _ what: @autoclosure () -> String) throws(NATSBridgeError) {
    guard status != NATS_OK else { return }
    let reason: Reason =
      switch status {
      case NATS_NO_SERVER: .noServer
      case NATS_CONNECTION_AUTH_FAILED, NATS_NOT_PERMITTED, NATS_SECURE_CONNECTION_REQUIRED,
        NATS_SECURE_CONNECTION_WANTED, NATS_SSL_ERROR:
        .refused
      case NATS_CONNECTION_CLOSED, NATS_INVALID_SUBSCRIPTION, NATS_DRAINING: .closed
      case NATS_TIMEOUT: .timedOut
      case NATS_NOT_FOUND, NATS_NO_RESPONDERS: .notFound
      default: .other
      }
    // The client's own text says less.
    guard reason != .closed else { throw closed }
    let cause = "\(text(of: status))\(cause(of: status))\(streamAdvice(on: status))"
    throw NATSBridgeError(reason, "The client of NATS could not \(what()): \(cause).")
  }

  /// What the client adds to its last failure on this thread.
  static func cause(of status: natsStatus) -> String {
    var last = NATS_OK
    guard let text = nats_GetLastError(&last), last == status, text.pointee != 0 else { return "" }
    let cause = String(cString: text)
    return " (\(cause)\(advice(on: cause)))"
  }

  /// What to do if there is no stream: the bridge asks the server for nothing else that may not be there.
  private static func streamAdvice(on status: natsStatus) -> String {
    switch status {
    case NATS_NO_RESPONDERS: ". This server has no JetStream, or has it not yet: start it with --jetstream"
    case NATS_NOT_FOUND: ". Make the stream by makeStream(_:of:) first"
    default: ""
    }
  }

  /// What to do about an error of the server's.
  static func advice(on cause: String) -> String {
    guard cause.lowercased().contains("maximum control line exceeded") else { return "" }
    return """
      : a bridge writes lines of up to 4,096 bytes, which is what servers take by default, and a longer first one for \
      a longer Options.name, password or token. Shorten these, or set max_control_line: 4096 or more in its \
      configuration
      """
  }

  static func text(of status: natsStatus) -> String {
    natsStatus_GetText(status).map { String(cString: $0) } ?? "status \(status.rawValue)"
  }
}
