// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if !ServiceLifecycle
  public import EventCore

  // What a program names first: the compiler then says which trait is missing.

  @available(
    *, unavailable,
    message:
      """
      EventCoreServiceLifecycle needs the package trait ServiceLifecycle: \
      traits: [.defaults, \"ServiceLifecycle\"] on the .package line
      """
  )
  public struct EventService {
    public init(
      _ parts: any EventReceiver..., drainingFor limit: Duration = .zero, logger: Any? = nil,
      report: ((Any) -> Void)? = nil
    ) {}
    public func run() async throws {}
  }
#endif
