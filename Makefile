# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# make demo    what `make` alone does: a game loop fed by this machine's own counters (installs what is missing)
# make play    a game in the terminal, on one pump (installs what is missing)
# make chat    a chat server for browsers on this machine; says the address to open (installs what is missing)
# make demo-network   a weather network in three processes, over a server of NATS that it starts (installs what is missing)
# make test    all tests (installs what is missing), one after the other: they make threads of their own
# make bench   all figures, about twelve minutes; make bench-quick: those of 24 bytes, two minutes
# make models, make explore   check the lock-free protocols: models, and the C code itself; make check   what CI runs
# make install, make amalgamation   the core for C and C++: c.mk

SHELL := /bin/bash
CC ?= cc
DEMO_ARGUMENTS ?=
PLAY_ARGUMENTS ?=
CHAT_PORT ?= 8080
DEMO_SECONDS ?= 20
TEST_ARGUMENTS ?=

C_SOURCES := $(wildcard Sources/CEventCore/*/*.c)
C_HEADERS := $(wildcard include/eventcore/*.h Sources/CEventCore/*/*.h)
C_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Werror -Iinclude -ISources/CEventCore

include c.mk

.DEFAULT_GOAL := demo
.PHONY: demo play chat demo-network test bench bench-quick check setup c-program models explore sanitize clean

demo: setup
	swift run --package-path Examples -c release eventcore-demo $(DEMO_ARGUMENTS)

play: setup
	swift run --package-path Examples -c release eventcore-game $(PLAY_ARGUMENTS)

# CHAT_PORT: where it listens; 0 takes a free one.
chat: setup
	swift run --package-path Examples/Chat -c release eventcore-chat $(CHAT_PORT)

# DEMO_SECONDS: how long.
demo-network:
	Bridges/NATS/demo.sh $(DEMO_SECONDS)

test: setup c-program
	@scripts/test.sh $(TEST_ARGUMENTS)

bench: setup
	Benchmarks/bench.sh

bench-quick: setup
	Benchmarks/bench.sh --quick

check:
	.ci/run

setup:
	@scripts/setup.sh

# The core from C alone, with the system's compiler and the public headers.
C_PROGRAMS := .build/c-program .build/c-shutdown $(if $(filter Linux,$(shell uname -s)),.build/c-realtime)
c-program: $(C_PROGRAMS)
	for program in $(C_PROGRAMS); do $$program || exit 1; done

.build/c-program: Tests/CProgram/main.c $(C_SOURCES) $(C_HEADERS)
	@mkdir -p .build
	$(CC) $(C_FLAGS) -o $@ Tests/CProgram/main.c $(C_SOURCES) -lurcu-bp -lpthread $(DL)

.build/c-shutdown: Tests/CProgram/shutdown.c .build/c/libeventcore.a
	$(CC) $(C_FLAGS) -o $@ Tests/CProgram/shutdown.c .build/c/libeventcore.a -lurcu-bp -lpthread $(DL)

# Linux and glibc: a filter of system calls, and malloc replaced.
.build/c-realtime: Tests/CProgram/realtime.c .build/c/libeventcore.a
	$(CC) $(C_FLAGS) -o $@ Tests/CProgram/realtime.c .build/c/libeventcore.a -lurcu-bp -lpthread -ldl

# The lock-free algorithms over all interleavings of small cases; needs spin.
models:
	Tests/Models/check.sh

# The core's own files on a simulated C11 memory: Tests/Explorer/README.md. EXPLORE_SHORT=1: two minutes.
explore:
	Tests/Explorer/explore.sh

sanitize:
	scripts/sanitize.sh

clean:
	rm -rf .build .build-* Examples/.build Examples/Chat/.build Benchmarks/.build Bridges/NATS/.build Bridges/NATS/.build-*
