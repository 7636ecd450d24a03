// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import Foundation

@testable import EventCoreNATS

enum Incident: CoordinateEvents, RemoteEvent, Equatable {
  static let subject = "tests.incident"
  case smoke(Int)
  case leak(pipe: String)
}

enum Shift: CoordinateEvents, RemoteEvent, Equatable {
  static let subject = "tests.shift"
  case began
}

/// A coordinator that does with each event what a test says.
private final class Desk: Coordinator {
  private let decide: (any CoordinateEvents) -> EventInterception

  init(_ decide: @escaping (any CoordinateEvents) -> EventInterception = { _ in .pass }) {
    self.decide = decide
    super.init()
  }

  override func intercept(_ event: any CoordinateEvents) -> EventInterception { decide(event) }
}

/// The coordinators of a machine: a top, and one below it that emits.
actor Machine {
  nonisolated let bridge: NATSBridge
  nonisolated let log = Log<String>()
  private var top: Desk!
  private var desk: Desk? = Desk()

  init(
    _ server: ServerProcess, _ core: EventCentral.Core = .default, on world: EventCentral? = nil,
    outbox: EventMailboxCapacity = NATSBridge.Options().outbox, inbox: Int = NATSBridge.Options().inbox,
    _ decide: @escaping @Sendable (any CoordinateEvents) -> EventInterception = { _ in .pass }
  ) async throws {
    try await self.init(at: server.url, on: world ?? EventCentral(core: core), decide) {
      ($0.outbox, $0.inbox) = (outbox, inbox)
    }
  }

  init(
    at url: String, on world: EventCentral = EventCentral(),
    _ decide: @escaping @Sendable (any CoordinateEvents) -> EventInterception = { _ in .pass },
    _ change: @Sendable (inout NATSBridge.Options) -> Void = { _ in }
  ) async throws {
    bridge = try await NATSBridge.to(url, on: world, change)
    make(decide)
  }

  private func make(_ decide: @escaping @Sendable (any CoordinateEvents) -> EventInterception) {
    top = Desk { [weak self] event in
      self?.preconditionIsolated()
      return decide(event)
    }
    top.start()
    top.startChild(desk!)
  }

  @discardableResult
  func forward(
    to parent: String, within limit: Duration = .seconds(60),
    carrying types: [any (CoordinateEvents & RemoteEvent).Type] = [Incident.self, Shift.self]
  ) throws -> RemoteRegistration {
    try bridge.forwardUnhandled(
      of: top, to: parent, carrying: types, within: limit
    ) { [weak self] event, answer in
      guard let self else { return }
      preconditionIsolated()
      switch answer {
      case .success(let emission): log.append("\(event) \(emission)")
      case .failure(let error as NATSBridgeError): log.append("\(event) \(error.reason)")
      case .failure(let error): log.append("\(event) \(error)")
      }
    }
  }

  @discardableResult
  func answer(
    as name: String, carrying types: [any (CoordinateEvents & RemoteEvent).Type] = [Incident.self, Shift.self]
  ) async throws -> RemoteRegistration {
    let registration = try bridge.answerUnhandled(by: desk!, as: name, carrying: types)
    try await bridge.settle()
    return registration
  }

  @discardableResult
  func emit(_ events: any CoordinateEvents...) -> [EventEmission] {
    events.map { top.childCoordinators[0].emitEvent($0) }
  }

  /// Lets go of the coordinators.
  func leave() { (top, desk) = (nil, nil) }
}

extension Machine {
  /// Adds an interceptor to the desk that is asked first.
  func interceptBelow(
    _ body: @escaping @Sendable (_ event: Incident, _ emit: (any CoordinateEvents) -> Void) -> EventInterception
  ) {
    desk?.intercept(Incident.self) { [unowned desk = desk!] event in
      body(event) { desk.emitEvent($0) }
    }
  }
}
