// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// A weather network in three processes, which `demo.sh` starts with a server of their own:
//
//     sensors ──Measured──► a group of workers ──Forecast──► dashboard
//
// No process knows of another one, and none would change if they were on three machines.

import EventCoreNATS
import Foundation

let arguments = CommandLine.arguments
guard arguments.count == 4 else {
  print("usage: eventcore-weather sensors|workers|dashboard URL SECONDS")
  fatalError("Three arguments are needed, and these were given: \(arguments.dropFirst()). Run demo.sh, which passes them.")
}
guard let seconds = Double(arguments[3]), seconds > 0, seconds <= 86_400 else {
  fatalError("A run takes more than 0 and up to 86,400 seconds, and this was \(arguments[3]): pass such a number.")
}
let server = NATSServer.url(arguments[2])
let duration = Duration.seconds(seconds)
do {
  switch arguments[1] {
  case "sensors": try await runSensors(server, for: duration)
  case "workers": try await runWorkers(server, for: duration)
  case "dashboard": try await runDashboard(server, for: duration)
  default: fatalError("The roles are sensors, workers and dashboard, and this was \(arguments[1]): pass one of them.")
  }
} catch {
  print("\(arguments[1]): \(error)")
  exit(1)
}
