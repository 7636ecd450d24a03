// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS

/// Messages of the client's that nobody needs any more.
///
/// The client frees what is destroyed on a thread of its own, and wakes that for each message: for a request and its
/// answer three times, beside the threads that somebody waits for. So some are destroyed together, for which it wakes
/// once.
final class SpentMessages: Sendable {
  static let shared = SpentMessages()
  /// At most so many wait: until others come after them, or a bridge ends.
  static let most = 31
  /// And at most so many bytes, without what headers take.
  static let mostBytes = 1 << 16

  private let waiting = Locked<(messages: [OpaquePointer], bytes: Int)>(([], 0))

  var count: Int { waiting.withLock { $0.messages.count } }

  /// Takes over a message. Any thread.
  func add(_ message: OpaquePointer) {
    let spent = waiting.withLock { waiting -> [OpaquePointer] in
      waiting.messages.append(message)
      waiting.bytes += Int(natsMsg_GetDataLength(message))
      guard waiting.messages.count > Self.most || waiting.bytes > Self.mostBytes else { return [] }
      defer { waiting = ([], 0) }
      return waiting.messages
    }
    for message in spent { natsMsg_Destroy(message) }
  }

  /// Destroys those that wait. Any thread.
  func destroyAll() {
    let spent = waiting.withLock { waiting in
      defer { waiting = ([], 0) }
      return waiting.messages
    }
    for message in spent { natsMsg_Destroy(message) }
  }
}
