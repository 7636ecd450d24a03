// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Dispatch
import EventDrivenSwift

/// "`EventPool`", with each of the balancers that the README names.
enum SeedPool {
  struct TemperatureEvent: Eventable {
    var temperatureInCelsius: Float
  }

  class TemperatureProcessor: EventThread {
    override func registerEventListeners() {
        addEventCallback(onTemperatureEvent, forEventType: TemperatureEvent.self)
    }

    func onTemperatureEvent(_ event: TemperatureEvent, _ priority: EventPriority, _ dispatchTime: DispatchTime) {

    }
  }

  class ByDefault {
    var temperatureProcessorPool = EventPool<TemperatureProcessor>(capacity: 5)
  }

  class RoundRobin {
    var temperatureProcessorPool = EventPool<TemperatureProcessor>(capacity: 5, balancer: EventPoolRoundRobinBalancer())
  }

  class LowestLoad {
    var temperatureProcessorPool = EventPool<TemperatureProcessor>(capacity: 5, balancer: EventPoolLowestLoadBalancer())
  }
}
