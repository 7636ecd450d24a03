// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// A listener has an owner: an object, or a token that somebody keeps.

struct Score: Eventable { var score = 0 }

func register() -> [EventListenerToken] {
  Score.addListener { _ in }  // expected-error {{'addListener' is unavailable: Name the owner, with which it ends: addListener(self) { … }; or write listen { … } and keep the token.}}
  Score.listen { _ in }  // expected-warning {{result of call to 'listen(interestedIn:maximumAge:on:isolation:_:)' is unused}}
  Score.listen(executeOn: .listenerThread) { _ in }  // expected-warning {{result of call to 'listen(executeOn:interestedIn:maximumAge:on:isolation:_:)' is unused}}
  return [Score.listen { _ in }, Score.listen(executeOn: .listenerThread) { _ in }]
}
