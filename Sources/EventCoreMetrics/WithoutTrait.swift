// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if !Metrics
  public import EventCore

  // What a program names first: the compiler then says which trait is missing.

  @available(
    *, unavailable,
    message: "EventCoreMetrics needs the package trait Metrics: traits: [.defaults, \"Metrics\"] on the .package line"
  )
  public struct EventMetrics {
    public init(
      observing central: EventCentral, times: EventSampling = .none, every interval: Duration = .zero,
      dimensions: [(String, String)] = [], factory: Any? = nil
    ) {}
    public init(
      of receivers: any EventReceiver..., every interval: Duration = .zero, dimensions: [(String, String)] = [],
      factory: Any? = nil
    ) {}
    public func run() async throws {}
  }
#endif
