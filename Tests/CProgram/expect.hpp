/* SPDX-License-Identifier: MIT */
/* Copyright the EventCore authors */
/* What the programs in C++ check: one that is wrong says what, and ends with 1. */
#ifndef EXPECT_HPP
#define EXPECT_HPP

#include <cstdio>
#include <cstdlib>

inline void expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	std::printf("wrong: %s\n", what);
	std::exit(1);
}

#endif
