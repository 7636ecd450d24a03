// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventDrivenSwift
import EventCoreTestSupport

/// The objects under test, with observers that are called directly whatever the caller's context.
protocol Observed: Observable {
  func addDirectly(_ observer: AnyObject)
}

extension ObservableClass: Observed {
  func addDirectly(_ observer: AnyObject) { addObserver(observer) }
}
extension ObservableThreadSafeClass: Observed {
  func addDirectly(_ observer: AnyObject) { addObserver(observer, executeOn: .notifyingThread) }
}
extension EventThread: Observed {
  func addDirectly(_ observer: AnyObject) { addObserver(observer, executeOn: .notifyingThread) }
}

extension Observable {
  func say(_ text: String) {
    withObservers { (observer: any Listener) in observer.hear(text) }
  }
}

/// Protocols of observers: two that are for classes, one that is for anything.
protocol Listener: AnyObject {
  func hear(_ text: String)
}
protocol Watcher: AnyObject {
  func watch(_ text: String)
}
protocol Named {
  var name: String { get }
}

final class Ear: Listener, Named, @unchecked Sendable {
  // Constants; `then` is called where the observer was added, one call at a time.
  let name: String
  private let log: Log<String>
  private let token: Lifetime.Token?
  private let then: () -> Void

  init(
    _ name: String, _ log: Log<String>, _ token: Lifetime.Token? = nil,
    then: @escaping () -> Void = {}
  ) {
    self.name = name
    self.log = log
    self.token = token
    self.then = then
  }

  func hear(_ text: String) {
    log.append("\(name) \(text)")
    then()
  }
}

class Eye: Watcher, Named, @unchecked Sendable {
  // Constants of Sendable types.
  let name: String
  let log: Log<String>

  init(_ name: String, _ log: Log<String>) {
    self.name = name
    self.log = log
  }

  func watch(_ text: String) { log.append("\(name) \(text)") }
}

final class Both: Listener, Watcher, Named, @unchecked Sendable {
  // Constants of Sendable types.
  let name: String
  private let log: Log<String>

  init(_ name: String, _ log: Log<String>) {
    self.name = name
    self.log = log
  }

  func hear(_ text: String) { log.append("\(name) \(text)") }
  func watch(_ text: String) { log.append("\(name) \(text)") }
}

/// Removes itself as it ends, as many observers do.
final class Leaving: Listener {
  private let observed: any Observable

  init(_ observed: any Observable) { self.observed = observed }

  func hear(_ text: String) {}

  deinit { observed.removeObserver(self) }
}
