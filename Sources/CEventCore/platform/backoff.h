/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Waiting for another thread that is a few instructions away, unless it was preempted.
 */
#ifndef EVC_BACKOFF_H
#define EVC_BACKOFF_H

/* Waits longer with each turn; `turn` counts from 0. */
void evc_backoff(unsigned turn);

#endif
