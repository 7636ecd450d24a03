// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import Foundation

/// The client of C, which sends what no bridge would.
final class RawClient: @unchecked Sendable {
  private var connection: OpaquePointer?
  private var subscription: OpaquePointer?

  init(_ server: ServerProcess, user: String? = nil, password: String? = nil) throws {
    var options: OpaquePointer?
    natsOptions_Create(&options)
    defer { natsOptions_Destroy(options) }
    natsOptions_SetURL(options, server.url)
    natsOptions_SetUserInfo(options, user, password)
    natsOptions_SetTimeout(options, 60_000)
    guard natsConnection_Connect(&connection, options) == NATS_OK else { throw CocoaError(.executableNotLoadable) }
  }

  deinit {
    natsSubscription_Destroy(subscription)
    natsConnection_Destroy(connection)
  }

  func publish(
    _ subject: String, reply: String? = nil, header: [UInt8]? = nil, batch: String? = nil, scope: String? = nil,
    _ body: Data
  ) {
    var message: OpaquePointer?
    body.withUnsafeBytes {
      _ = natsMsg_Create(&message, subject, reply, $0.baseAddress?.assumingMemoryBound(to: CChar.self), Int32($0.count))
    }
    if let header {
      // A string of C: it ends with the first zero.
      (header + [0]).withUnsafeBytes {
        _ = natsMsgHeader_Set(message, "EventCore", $0.baseAddress!.assumingMemoryBound(to: CChar.self))
      }
    }
    if let batch { natsMsgHeader_Set(message, "EventCore-Batch", batch) }
    if let scope { natsMsgHeader_Set(message, "EventCore-Scope", scope) }
    let status = natsConnection_PublishMsg(connection, message)
    natsMsg_Destroy(message)
    precondition(status == NATS_OK, "The test could not send: \(String(cString: natsStatus_GetText(status))).")
  }

  func publish(_ subject: String, header: String, _ body: String) {
    publish(subject, header: Array(header.utf8), Data(body.utf8))
  }

  func flush() { _ = natsConnection_FlushTimeout(connection, 60_000) }

  /// What no bridge does with streams.
  func withStreams(_ body: (OpaquePointer) -> natsStatus) throws {
    var streams: OpaquePointer?
    natsConnection_JetStream(&streams, connection, nil)
    defer { jsCtx_Destroy(streams) }
    guard let streams, body(streams) == NATS_OK else { throw CocoaError(.featureUnsupported) }
  }

  func makeStream(_ name: String, of pattern: String, _ change: (inout jsStreamConfig) -> Void = { _ in }) throws {
    try withStreams { streams in
      var configuration = jsStreamConfig()
      jsStreamConfig_Init(&configuration)
      let subject = strdup(pattern)
      defer { free(subject) }
      var subjects = [UnsafePointer(subject)]
      return name.withCString { name in
        subjects.withUnsafeMutableBufferPointer { subjects in
          (configuration.Name, configuration.Subjects, configuration.SubjectsLen) = (name, subjects.baseAddress, 1)
          change(&configuration)
          return js_AddStream(nil, streams, &configuration, nil, nil)
        }
      }
    }
  }

  /// Whether anybody would get a message. It is sent, and takes 100 milliseconds if somebody does.
  func hasSubscribers(_ subject: String) -> Bool {
    var message: OpaquePointer?
    defer { natsMsg_Destroy(message) }
    return natsConnection_RequestString(&message, connection, subject, "", 100) != NATS_NO_RESPONDERS
  }

  /// Takes what comes under a subject, from the return on.
  func subscribe(to subject: String) {
    natsConnection_SubscribeSync(&subscription, connection, subject)
    flush()
  }

  /// What a stream has, and how it goes about that.
  func stream<Result>(_ name: String, _ read: (jsStreamInfo) -> Result) throws -> Result {
    var result: Result?
    try withStreams { streams in
      var stream: UnsafeMutablePointer<jsStreamInfo>?
      defer { jsStreamInfo_Destroy(stream) }
      let status = js_GetStreamInfo(&stream, streams, name, nil, nil)
      result = (stream?.pointee).map(read)
      return status
    }
    return result!
  }

  /// What the server knows of a durable subscription.
  func consumer<Result>(_ name: String, of stream: String, _ read: (jsConsumerInfo) -> Result) throws -> Result {
    var result: Result?
    try withStreams { streams in
      var consumer: UnsafeMutablePointer<jsConsumerInfo>?
      defer { jsConsumerInfo_Destroy(consumer) }
      let status = js_GetConsumerInfo(&consumer, streams, stream, name, nil, nil)
      result = (consumer?.pointee).map(read)
      return status
    }
    return result!
  }

  /// Waits for a message, and returns its body.
  func nextBody() -> Data? {
    var message: OpaquePointer?
    guard natsSubscription_NextMsg(&message, subscription, 60_000) == NATS_OK else { return nil }
    defer { natsMsg_Destroy(message) }
    return Data(bytes: natsMsg_GetData(message), count: Int(natsMsg_GetDataLength(message)))
  }

  /// Waits for a message, and returns where its reply is to go.
  func nextReplySubject() -> String? {
    var message: OpaquePointer?
    guard natsSubscription_NextMsg(&message, subscription, 60_000) == NATS_OK else { return nil }
    defer { natsMsg_Destroy(message) }
    return natsMsg_GetReply(message).map { String(cString: $0) }
  }
}
