// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore

// The kernel's counters as events. Each has the time of its sample, in nanoseconds since the sampling began,
// and counters since the start of the machine, whose differences give rates. None has more than 32 bytes, so
// that they fit into the envelope.

/// How long one processor has worked, in ticks of the kernel.
package struct CPUTimeEvent: Eventable, Equatable {
  package var time: UInt64
  package var index: UInt32
  package var busy: UInt64
  package var total: UInt64
}

/// The memory of the machine, in bytes.
package struct MemoryEvent: Eventable, Equatable {
  package var time: UInt64
  package var total: UInt64
  package var available: UInt64
  package var dirty: UInt64
}

/// How often devices and the kernel itself have interrupted.
package struct InterruptEvent: Eventable, Equatable {
  package var time: UInt64
  package var hard: UInt64
  package var soft: UInt64
}

/// How often the processors have switched between threads, and how many threads run now.
package struct ContextSwitchEvent: Eventable, Equatable {
  package var time: UInt64
  package var switches: UInt64
  package var forks: UInt64
  package var running: UInt32
  package var blocked: UInt32
}

/// What all network interfaces except for the loopback have transferred.
package struct NetworkEvent: Eventable, Equatable {
  package var time: UInt64
  package var receivedBytes: UInt64
  package var sentBytes: UInt64
  package var packets: UInt64
}

/// What all disks have transferred.
package struct DiskEvent: Eventable, Equatable {
  package var time: UInt64
  package var readBytes: UInt64
  package var writtenBytes: UInt64
  package var operations: UInt64
}
