// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// Everything that can be measured, shape by shape. The quick scale has the 24-byte rows, and of
/// events with references the allocations.
func catalogue(_ scale: Scale) -> [Candidate] {
  var all = plainCandidates(Event24.self, scale)
  all += boundedCandidates(scale)
  all += observedCandidates(scale)
  all += crowdCandidates(Event24.self, scale)
  all += gapCandidates(scale)
  all += endedThreadCandidates(scale)
  all += batchCandidates(Event24.self, scale)
  all += laneCandidates(Event24.self, scale)
  all += idleWakeCandidates(scale)
  all += spinCandidates(scale)
  all += pumpCandidates(scale)
  all += allocationCandidates(Event24.self)
  all += allocationCandidates(StringEvent.self)
  all.append(lazyAllocationCandidate(Event24.self))
  all += poolCandidates(scale)
  all += listenerCandidates(Event24.self, scale)
  all += sequenceCandidates(Event24.self, scale)
  all += taskCandidates(scale)
  all += latestOnlyCandidates(scale)
  all += conflatedCandidates(scale)
  all += frameCandidates(scale)
  all += idleCandidates()
  all += treeCandidates(scale)
  all += emitCandidates(scale)
  all += churnCandidates(scale)
  all += timerCandidates(scale)
  all += choiceCandidates(scale)
  if !scale.isQuick {
    all += numberCandidates(Event8.self, scale.halved)
    all += numberCandidates(Event200.self, scale.halved)
    all += plainCandidates(StringEvent.self, scale.halved)
  }
  return all
}

private func numberCandidates<E: NumberEvent>(_ type: E.Type, _ scale: Scale) -> [Candidate] {
  plainCandidates(type, scale) + batchCandidates(type, scale) + laneCandidates(type, scale)
}
