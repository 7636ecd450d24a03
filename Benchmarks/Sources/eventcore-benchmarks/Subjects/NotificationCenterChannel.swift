// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A center with an observer for each handler. It calls them on the thread that posts: nothing
/// crosses threads, and the poster waits for all handlers.
final class NotificationCenterChannel<Event: BenchmarkEvent>: Channel, @unchecked Sendable {
  static var staysOnSender: Bool { true }

  // All fields are constant; the center may be used from any thread.
  private let center = NotificationCenter()
  private let name = Notification.Name("event")
  private let observers: [any NSObjectProtocol]

  init(_ consumers: [[Handler]]) {
    observers = consumers.joined().map { [center, name] handler in
      center.addObserver(forName: name, object: nil, queue: nil) { notification in
        // Nobody else knows this center or this name, and `send` below posts nothing but events.
        handler(notification.object as! Event)
      }
    }
  }

  @inline(__always)
  func send(_ event: consuming Event) {
    center.post(name: name, object: event)
  }

  func end() {
    for observer in observers {
      center.removeObserver(observer)
    }
  }
}
