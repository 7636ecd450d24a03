// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreRecording

// Every event of the game, and why it goes the way it goes. One thread handles all of them, inside the one
// `pump.run()` of a step (Game.swift), so no handler needs a lock.
//
// | Event | Way | Why this way |
// |---|---|---|
// | `Beginning` | queued, `.highest` | It comes before all keys, and a recording begins with it |
// | `Ending` | stacked, `.highest` | Nothing that waits may come before the end of the terminal, least of all keys |
// | `Alarm` | raised; then stacked, `.highest` | It overtakes the hits that wait in the same step: see Field.swift |
// | `Input` | queued, `.high` | Keys in the order in which they were pressed, all of them before the step's `Tick` |
// | `Tick` | queued, `.normal` | The world moves once a step, after the keys |
// | `Hit` | queued; then raised at what was hit | Found in the middle of a move, handled when the move is complete |
// | timers | queued, `.normal` | They are events like all others, only later: see Timers.swift |
// | `Destroyed` | raised; then queued, `.low` | The tree decides what it means; the sparks can wait until the end |
// | `BreakFormation` | propagated from a squadron | It concerns the raiders below that node, and nobody else |
// | `Navigation` | emitted by a screen | A screen says what was asked for; its coordinators know what comes next |

/// What a player can do, in the words of a recording. `suspend` is a pause that does not end by the same key.
enum Key: String, Codable { case left, right, stop, fire, start, pause, suspend, quit }

/// A game begins with these random numbers. This and the next two are all that comes from outside: a recording has
/// them, and dispatched again at the same steps they give the same game.
struct Beginning: RecordableEvent { let seed: UInt64 }
/// A key, wherever it comes from: the terminal, the bot or a recording.
struct Input: RecordableEvent { let key: Key }
/// Somebody outside the game ends it, by a signal; 0 is none.
struct Ending: RecordableEvent { let signal: Int32 }
/// A step of simulated time, a sixtieth of a second.
struct Tick: Eventable {}
/// The object of a node was hit; the node is that of its outermost part.
struct Hit: Eventable { let target: EventNode, damage: Int }
/// An object is gone.
struct Destroyed: Eventable { enum Kind { case raider, leader, ship }; let kind: Kind, at: Point }
/// What the player has to know at once.
enum Alarm: Eventable { case hullBreached(left: Int), raidersDiving }
/// The raiders of a squadron leave their places, and dive at the ship.
struct BreakFormation: Eventable {}
/// The events of the timers.
struct WaveBegins: Eventable { let wave: Int }
struct ShieldFades: Eventable {}
/// What screens ask of the coordinators above them.
enum Navigation: CoordinateEvents { case title, play, pause, resume, quit, over(score: Int, wave: Int) }
