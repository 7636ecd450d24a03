/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/**
 * @file version.h
 * The version that a program is compiled for, and the one that it runs with.
 *
 * Versions follow semver.org. Before 1.0 a new minor version may change the binary interface; the shared
 * library's name then changes with it (libeventcore.so.0.1, libeventcore.so.1).
 */
#ifndef EVENTCORE_VERSION_H
#define EVENTCORE_VERSION_H

#include "base.h"

/** The version of these headers. */
#define EVC_VERSION_MAJOR 0
#define EVC_VERSION_MINOR 1
#define EVC_VERSION_PATCH 0

/** Three parts of a version as one number that grows with it, also in #if. */
#define EVC_VERSION_NUMBER(major, minor, patch) ((major) * 1000000u + (minor) * 1000u + (patch))
/** The version of these headers as one number. */
#define EVC_VERSION EVC_VERSION_NUMBER(EVC_VERSION_MAJOR, EVC_VERSION_MINOR, EVC_VERSION_PATCH)

EVC_BEGIN_DECLS

/**
 * Returns the version of the library that the program runs with, as EVC_VERSION. A program that loads the
 * library itself compares it with the EVC_VERSION of its own headers before anything else.
 *
 * Threads: any. Progress: wait-free.
 */
EVC_API uint32_t evc_version(void);

EVC_END_DECLS
#endif
