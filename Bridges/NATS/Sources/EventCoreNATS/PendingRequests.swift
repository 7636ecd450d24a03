// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import EventCore
import Foundation

/// Requests that wait for their replies, which come on a subject of the bridge's.
final class PendingRequests: Sendable {
  typealias Reply = Result<Data, any Error>
  private struct Waiting {
    var done: @Sendable (Reply) -> Void
    /// Ends the wait.
    var timer: Task<Void, Never>
  }
  private struct State {
    var waiting: [UInt64: Waiting] = [:]
    var next: UInt64 = 0
    var hasEnded = false
  }
  private let state = Locked(State())
  private let inbox: String
  private let link: Link

  init(_ link: Link) {
    self.link = link
    // That nobody guesses.
    inbox = "_INBOX." + (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
  }

  var pattern: String { "\(inbox).*" }

  /// Where the reply to a request is to go.
  func subject(of number: UInt64) -> String { "\(inbox).\(number)" }

  /// Begins to wait for a reply.
  ///
  /// - Parameter done: Gets it, or why there is none, on any thread, once.
  /// - Returns: The number of the request, which is to be sent now.
  func begin(within limit: Duration, _ done: @escaping @Sendable (Reply) -> Void) -> UInt64 {
    let (number, isOpen) = state.withLock { state in
      state.next += 1
      let number = state.next
      guard !state.hasEnded else { return (number, false) }
      // With the lock held, so that the timer finds the request.
      let timer = Task {
        guard (try? await Task.sleep(for: limit)) != nil else { return }
        self.finish(number, .failure(EventWaitError.timedOut(limit)))
      }
      state.waiting[number] = Waiting(done: done, timer: timer)
      return (number, true)
    }
    if !isOpen { done(.failure(NATSBridgeError(.closed, "The bridge forwards nothing any more."))) }
    return number
  }

  func isWaiting(_ number: UInt64) -> Bool { state.withLock { $0.waiting[number] != nil } }

  /// Sends a request, and waits for its reply.
  func send(within limit: Duration, _ makeMessage: (_ reply: String) -> OpaquePointer?) async throws -> Data {
    let begun = Locked<UInt64?>(nil)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let number = begin(within: limit) { continuation.resume(with: $0) }
        begun.withLock { $0 = number }
        // The handler may have run before the request had a number.
        guard !Task.isCancelled else { return finish(number, .failure(CancellationError())) }
        let message = makeMessage(subject(of: number))
        defer { natsMsg_Destroy(message) }
        let status = message.map { natsConnection_PublishMsg(link.connection, $0) } ?? NATS_MAX_PAYLOAD
        do throws(NATSBridgeError) {
          try NATSBridgeError.check(status, "send a request")
        } catch {
          finish(number, .failure(error))
        }
      }
    } onCancel: {
      guard let number = begun.withLock({ $0 }) else { return }
      finish(number, .failure(CancellationError()))
    }
  }

  func takeReply(_ message: OpaquePointer) {
    guard let subject = natsMsg_GetSubject(message),
      let number = UInt64(String(cString: subject).dropFirst(inbox.count + 1))
    else { return }
    var line: UnsafePointer<CChar>?
    // The server's own word that nobody has subscribed.
    if natsMsgHeader_Get(message, "Status", &line) == NATS_OK, let line, String(cString: line).hasPrefix("503") {
      return finish(number, .failure(EventWaitError.nobodyAnswers))
    }
    if natsMsgHeader_Get(message, failureKey, &line) == NATS_OK, let line {
      return finish(
        number, .failure(NATSBridgeError(.answerFailed, "The answerer on another machine: \(String(cString: line)).")))
    }
    let length = Int(natsMsg_GetDataLength(message))
    finish(number, .success(natsMsg_GetData(message).map { Data(bytes: $0, count: length) } ?? Data()))
  }

  /// The first outcome counts.
  func finish(_ number: UInt64, _ reply: Reply) {
    guard let one = state.withLock({ $0.waiting.removeValue(forKey: number) }) else { return }
    one.timer.cancel()
    one.done(reply)
  }

  func end() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for one in waiting {
      one.timer.cancel()
      one.done(.failure(NATSBridgeError(.closed, "The bridge was closed.")))
    }
  }
}

/// In a reply that is no answer: why not.
private let failureKey = "EventCore-Failure"

extension Link {
  func send(_ subject: String, _ body: Data) {
    body.withUnsafeBytes { bytes in
      _ = natsConnection_Publish(connection, subject, bytes.baseAddress, Int32(clamping: bytes.count))
    }
  }

  func send(_ subject: String, failure: String) {
    // A header is a line.
    let line = failure.split(whereSeparator: \.isNewline).joined(separator: " ").prefix(500)
    send(subject, header: failureKey, String(line))
  }

  /// The same as the server's word that nobody has subscribed.
  func sendNobody(_ subject: String) { send(subject, header: "Status", "503") }

  private func send(_ subject: String, header: String, _ line: String) {
    var message: OpaquePointer?
    guard natsMsg_Create(&message, subject, nil, nil, 0) == NATS_OK else { return }
    defer { natsMsg_Destroy(message) }
    natsMsgHeader_Set(message, header, line)
    natsConnection_PublishMsg(connection, message)
  }
}
