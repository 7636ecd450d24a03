// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation

/// Requests that wait for their replies, which come on a subject of the bridge's.
final class PendingRequests: Sendable {
  private let pending: Pending<Data>
  private let inbox: String
  private let longest: Int

  init(within limit: Duration, _ options: NATSBridge.Options) {
    pending = Pending(within: limit)
    longest = options.longestMessage
    // That nobody guesses.
    inbox = "_INBOX." + (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
  }

  var pattern: String { "\(inbox).*" }

  /// Where the reply to a request is to go.
  func subject(of number: UInt64) -> String { "\(inbox).\(number)" }

  /// Begins to wait for the reply to a request, which is to be sent then.
  func begin(_ done: @escaping @Sendable (Result<Data, any Error>) -> Void) -> UInt64? { pending.begin(done) }
  var count: Int { pending.count }
  func isWaiting(_ number: UInt64) -> Bool { pending.isWaiting(number) }
  func finish(_ number: UInt64, _ reply: Result<Data, any Error>) { pending.finish(number, reply) }
  func end() { pending.end() }

  func takeReply(_ message: OpaquePointer) {
    guard let subject = natsMsg_GetSubject(message) else { return }
    let bytes = UnsafeRawBufferPointer(start: subject, count: strlen(subject))
    let digits = bytes.dropFirst(inbox.utf8.count + 1)
    guard let number = Int64(digits: digits).flatMap(UInt64.init(exactly:)) else { return }
    var line: UnsafePointer<CChar>?
    // The server's word that nobody has subscribed, or a bridge's that nobody answers.
    if natsMsgHeader_Get(message, statusKey.bytes, &line) == NATS_OK, let line, String(cString: line).hasPrefix("503") {
      return finish(number, .failure(EventWaitError.nobodyAnswers))
    }
    if natsMsgHeader_Get(message, failureKey.bytes, &line) == NATS_OK, let line {
      let text = String(cString: line)
      let end = text.last.map { ".!?".contains($0) } == true ? "" : "."
      return finish(
        number, .failure(NATSBridgeError(.answerFailed, "The answerer on another machine: \(text)\(end)")))
    }
    let length = Int(natsMsg_GetDataLength(message))
    guard length <= longest else {
      return finish(
        number,
        .failure(
          NATSBridgeError(
            .answerFailed,
            """
            A bridge takes answers of up to \(longest) bytes, and this one has \(length): raise its \
            Options.longestMessage, or have shorter answers.
            """)))
    }
    finish(number, .success(natsMsg_GetData(message).map { Data(bytes: $0, count: length) } ?? Data()))
  }
}

/// Where the answer to a message is to go: nil unless that is a place for answers, of a client's or of the server's,
/// which has its own between two accounts. At another one, such as `$JS.API.STREAM.DELETE.ORDERS`, the answer would be
/// what the asker may not send himself.
func replySubject(of message: OpaquePointer) -> String? {
  guard let reply = natsMsg_GetReply(message).map({ String(cString: $0) }) else { return nil }
  return ["_INBOX.", "_R_."].contains { reply.utf8.starts(with: $0.utf8) } ? reply : nil
}

/// In a reply that is no answer: why not.
private let failureKey: StaticString = "EventCore-Failure"
private let statusKey: StaticString = "Status"

extension Link {
  // The caller waits for nobody: it may be the thread that dispatches, at the end of an event.

  func send(_ subject: String, _ body: Data) { enqueue { $0.write(body, to: subject) } }

  /// The same for the caller that has made the answer, and not at the end of an event: one with `sendsAtOnce` waits for
  /// the network instead of for a thread that writes.
  func sendAnswer(_ subject: String, _ body: Data) {
    if sendsAtOnce { write(body, to: subject) } else { send(subject, body) }
  }

  private func write(_ body: Data, to subject: String) {
    notePlain()
    let status = subject.withCString { subject in
      body.withUnsafeBytes { natsConnection_Publish(connection, subject, $0.baseAddress, Int32(clamping: $0.count)) }
    }
    // Whoever waits for it would wait until it is too late.
    guard status == NATS_MAX_PAYLOAD else { return }
    let most = natsConnection_GetMaxPayload(connection)
    send(subject, failure: "its answer has \(body.count) bytes, and the server takes \(most)")
  }

  func send(_ subject: String, failure: String) {
    // A header is a line, and a string of C. The client takes one of spaces alone for no header, and its message for an
    // answer. Unicode scalars, not characters: one of those may have any number of marks.
    let text = failure.split { $0.isNewline || $0 == "\0" }.joined(separator: " ")
    let line = String(text.unicodeScalars.prefix(500))
    let isBlank = line.allSatisfy(\.isWhitespace)
    send(subject, header: failureKey, isBlank ? "it threw an error without a description" : line)
  }

  /// The same as the server's word that nobody has subscribed.
  func sendNobody(_ subject: String) { send(subject, header: statusKey, "503") }

  private func send(_ subject: String, header: StaticString, _ line: String) {
    enqueue { link in
      link.notePlain()
      var message: OpaquePointer?
      guard natsMsg_Create(&message, subject, nil, nil, 0) == NATS_OK else { return }
      defer { message.map(SpentMessages.shared.add) }
      natsMsgHeader_Set(message, header.bytes, line)
      natsConnection_PublishMsg(link.connection, message)
    }
  }
}
