// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCoreNATS

/// What a station has measured. Each goes to one worker.
struct Measured: RemoteEvent {
  static let subject = "weather.measured"
  var station: Int
  var number: Int
  var celsius: Double
}

/// What a worker makes of it, for everybody.
struct Forecast: RemoteEvent {
  static let subject = "weather.forecast"
  var station: Int
  var number: Int
  var celsius: Double
  var worker: String
}

let stations = ["Harbour", "Airport", "Hill", "Forest", "Island", "Pass"]
