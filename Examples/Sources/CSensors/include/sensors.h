/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* A library in C that takes part in a Swift program's events: its structures are the events of both. */
#ifndef SENSORS_H
#define SENSORS_H

#include <stdbool.h>
#include <stdint.h>

struct evc_router;
struct sensors;

/* From the library: what a sensor has measured. */
struct reading {
	uint32_t sensor;
	uint32_t number;
	double value;
};

/* To the library: measure so many times. */
struct measure {
	uint32_t sensor;
	uint32_t count;
};

/*
 * Starts a thread that answers each `measure` of the router with readings. The keys are those of the two structures.
 * NULL: not enough memory. End it with sensors_stop, before the router ends.
 */
struct sensors *sensors_start(struct evc_router *router, uint64_t reading_key, uint64_t measure_key);

/* Ends the thread, after what it was asked for. Returns how many readings it has dispatched. */
uint64_t sensors_stop(struct sensors *sensors);

#endif
