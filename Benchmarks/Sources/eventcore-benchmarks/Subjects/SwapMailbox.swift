// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// The mailbox that one writes by hand: a mutex, a condition, and per lane two arrays that the
/// consumer swaps. It signals only if the consumer sleeps.
///
/// With ten lanes the order holds within what was swapped at once; a more urgent event that comes
/// later waits for all of it. One lane is all that the other shapes use.
final class SwapMailbox<Event>: @unchecked Sendable {
  // `shared` is guarded by the mutex. `working` belongs to the consumer, but for the swap.
  private struct Shared {
    var buffers: UnsafeMutablePointer<SwapBuffer<Event>>
    var isEmpty = true
    var isClosed = false
    var sleeps = false
  }

  private let lanes: Int
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private let shared = UnsafeMutablePointer<Shared>.allocate(capacity: 1)
  private let working: UnsafeMutablePointer<SwapBuffer<Event>>

  init(lanes: Int) {
    self.lanes = lanes
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
    let buffers = UnsafeMutablePointer<SwapBuffer<Event>>.allocate(capacity: lanes)
    working = .allocate(capacity: lanes)
    for lane in 0..<lanes {
      (buffers + lane).initialize(to: SwapBuffer(capacity: 65_536 / lanes))
      (working + lane).initialize(to: SwapBuffer(capacity: 65_536 / lanes))
    }
    shared.initialize(to: Shared(buffers: buffers))
  }

  deinit {
    for lane in 0..<lanes {
      shared.pointee.buffers[lane].free()
      working[lane].free()
    }
    shared.pointee.buffers.deallocate()
    working.deallocate()
    shared.deallocate()
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Any thread.
  @inline(__always)
  func post(_ event: consuming Event, lane: Int = 0) {
    pthread_mutex_lock(mutex)
    shared.pointee.buffers[lane].append(event)
    unlockAndWake()
  }

  /// All of a batch under one lock. Any thread.
  func post(batch: [Event]) {
    pthread_mutex_lock(mutex)
    for event in batch {
      shared.pointee.buffers[0].append(event)
    }
    unlockAndWake()
  }

  @inline(__always)
  private func unlockAndWake() {
    shared.pointee.isEmpty = false
    let wakes = shared.pointee.sleeps
    shared.pointee.sleeps = false
    pthread_mutex_unlock(mutex)
    if wakes {
      pthread_cond_signal(condition)
    }
  }

  func close() {
    pthread_mutex_lock(mutex)
    shared.pointee.isClosed = true
    pthread_mutex_unlock(mutex)
    pthread_cond_signal(condition)
  }

  /// Calls the handlers for every event until the mailbox is closed. The consumer.
  func run(_ handlers: [EventClosure<Event>]) {
    while swap() {
      for lane in 0..<lanes where !working[lane].isEmpty {
        let count = working[lane].count
        // The first five of ten lanes are stacks: the last comes first.
        let isStack = lanes == 10 && lane < 5
        for index in 0..<count {
          let event = working[lane][isStack ? count &- 1 &- index : index]
          for handler in handlers {
            handler(event)
          }
        }
        working[lane].removeAll()
      }
    }
  }

  /// Waits for events and takes all of them. False once the mailbox is closed.
  private func swap() -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while shared.pointee.isEmpty {
      if shared.pointee.isClosed {
        return false
      }
      shared.pointee.sleeps = true
      pthread_cond_wait(condition, mutex)
    }
    shared.pointee.sleeps = false
    shared.pointee.isEmpty = true
    for lane in 0..<lanes {
      let taken = shared.pointee.buffers[lane]
      shared.pointee.buffers[lane] = working[lane]
      working[lane] = taken
    }
    return true
  }
}
