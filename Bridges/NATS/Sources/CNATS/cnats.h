/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
#ifndef CNATS_H
#define CNATS_H

#include <nats/nats.h>

#endif
