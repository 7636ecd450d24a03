// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if !Logging
  public import EventCore

  // What a program names first: the compiler then says which trait is missing.

  @available(
    *, unavailable,
    message: "EventCoreLogging needs the package trait Logging: traits: [.defaults, \"Logging\"] on the .package line"
  )
  public struct EventLog {
    public init(
      of central: EventCentral = .shared, _ receivers: any EventReceiver..., to logger: Any, backlog: Int = 0,
      slow: Duration? = nil, every interval: Duration = .zero
    ) {}
    public func run() async throws {}
  }
#endif
