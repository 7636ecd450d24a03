// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

public import Dispatch

extension DispatchTime {
  /// Tells those who write the instant of another clock where a deadline is wanted, as in
  /// `pool.drain(until: .now + .seconds(3))`: without it the compiler fails to say what is wrong.
  @available(
    *, unavailable, message: "The time is a DispatchTime: write .now() + .seconds(3), with parentheses."
  )
  public static var now: DispatchTime { .now() }
}
