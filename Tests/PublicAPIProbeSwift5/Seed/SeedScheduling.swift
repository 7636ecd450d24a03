// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift
import Foundation

/// "Scheduled *Dispatching* of an *Event*".
enum SeedScheduling {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  /// As printed: after four seconds.
  static func inFourSeconds(_ temperatureEvent: TemperatureEvent) {
    temperatureEvent.scheduleQueue(at: DispatchTime.now() + TimeInterval().advanced(by: 4), priority: .highest)
    temperatureEvent.scheduleStack(at: DispatchTime.now() + TimeInterval().advanced(by: 4), priority: .highest)
  }

  /// The same, soon.
  static func soon(_ temperatureEvent: TemperatureEvent) -> DispatchTime {
    let time = DispatchTime.now() + TimeInterval().advanced(by: 0.004)
    temperatureEvent.scheduleQueue(at: time, priority: .highest)
    temperatureEvent.scheduleStack(at: time, priority: .highest)
    return time
  }
}
