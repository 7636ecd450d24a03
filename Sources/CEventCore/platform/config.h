/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/*
 * Whether the core is compiled at all. Every source includes this file before anything else.
 *
 * The core is on, unless the package manager compiles it: that one says with EVC_TRAITS that it passes what the
 * package's traits choose (EVC_URCU, EVC_LGPL_INLINE), and compiles every file whatever they are.
 */
#ifndef EVC_CONFIG_H
#define EVC_CONFIG_H

#if !defined(EVC_TRAITS) && !defined(EVC_URCU)
#define EVC_URCU 1
#endif

#endif
