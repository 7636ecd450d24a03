# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The core as a library for C and C++. Needs a C compiler and liburcu; `make amalgamation` needs python3.
#
#   make c-library       .build/c: the shared and the static library
#   make install         into PREFIX (/usr/local), under DESTDIR if that is given; and make uninstall
#   make amalgamation    .build/amalgamation: eventcore.c and eventcore.h (and for C++ eventcore.hpp), to drop into a project
#
# CC, CFLAGS and LDFLAGS are the caller's.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR ?=

version_part = $(shell sed -n 's/^.define EVC_VERSION_$(1) //p' include/eventcore/version.h)
MAJOR := $(call version_part,MAJOR)
MINOR := $(call version_part,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call version_part,PATCH)
# What a change of the binary interface changes: before 1.0 that is the minor version too.
ABI := $(if $(filter 0,$(MAJOR)),0.$(MINOR),$(MAJOR))

ifeq ($(shell uname -s),Darwin)
  SONAME := libeventcore.$(ABI).dylib
  SHARED := libeventcore.$(VERSION).dylib
  SHARED_LINK := libeventcore.dylib
  SHARED_FLAGS = -dynamiclib -install_name $(LIBDIR)/$(SONAME) -compatibility_version $(ABI) -current_version $(VERSION)
else
  SONAME := libeventcore.so.$(ABI)
  SHARED := libeventcore.so.$(VERSION)
  SHARED_LINK := libeventcore.so
  SHARED_FLAGS = -shared -Wl,-soname,$(SONAME) -Wl,-z,defs
endif

# Before glibc 2.34 a library of its own: dladdr, dlopen.
DL := $(if $(filter Linux,$(shell uname -s)),-ldl)
CFLAGS ?= -O2 -g
LIBRARY_FLAGS = -std=gnu11 $(CFLAGS) -fPIC -fvisibility=hidden -Iinclude -ISources/CEventCore
LIBRARY_OBJECTS := $(patsubst Sources/CEventCore/%.c,.build/c/%.o,$(C_SOURCES))
LIBRARIES := .build/c/$(SHARED) .build/c/libeventcore.a
HEADERS := $(wildcard include/eventcore/*.h include/eventcore/*.hpp)

.PHONY: c-library install uninstall amalgamation check-prefix

c-library: $(LIBRARIES)

# Everything is compiled anew when a flag changes.
.build/c/flags: FORCE
	@mkdir -p .build/c
	@echo '$(CC) $(LIBRARY_FLAGS) $(LDFLAGS) $(SHARED_FLAGS)' | cmp -s - $@ || echo '$(CC) $(LIBRARY_FLAGS) $(LDFLAGS) $(SHARED_FLAGS)' > $@
FORCE:

.build/c/%.o: Sources/CEventCore/%.c $(C_HEADERS) .build/c/flags
	@mkdir -p $(@D)
	$(CC) $(LIBRARY_FLAGS) -c -o $@ $<

.build/c/$(SHARED): $(LIBRARY_OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHARED_FLAGS) -o $@ $(LIBRARY_OBJECTS) -lurcu-bp -lpthread $(DL)

.build/c/libeventcore.a: $(LIBRARY_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $(LIBRARY_OBJECTS)

# By the environment, since a quote in the recipe would end there.
check-prefix: export CHECKED_PREFIX = $(PREFIX)
check-prefix: export CHECKED_LIBDIR = $(LIBDIR)
check-prefix: export CHECKED_INCLUDEDIR = $(INCLUDEDIR)
check-prefix: export CHECKED_DESTDIR = $(DESTDIR)
check-prefix:
	@check() { case "$$2" in /*) ;; *) \
	  echo "make install and uninstall: $$1 is an absolute path, since eventcore.pc names it; found \"$$2\"." \
	    "Say $$1=\$$PWD/$$2" >&2; \
	  exit 1;; esac; \
	  case "$$2" in *[[:space:]\&\|\\\'\"\$$\`\;\#\*\?\[\]\(\)\<\>]*) \
	  echo "make install and uninstall: $$1 has no spaces, quotes, backslashes and signs of the shell, which" \
	    "eventcore.pc and the files for CMake cannot name; found \"$$2\". Choose another folder" >&2; \
	  exit 1;; esac; }; \
	check PREFIX "$$CHECKED_PREFIX"; check LIBDIR "$$CHECKED_LIBDIR"; check INCLUDEDIR "$$CHECKED_INCLUDEDIR"; \
	case "$$CHECKED_DESTDIR" in *\'*) \
	  echo "make install and uninstall: DESTDIR has no single quote, which would end those of the recipe;" \
	    "found \"$$CHECKED_DESTDIR\". Choose another folder" >&2; \
	  exit 1;; esac

fill = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' \
  -e 's|@VERSION@|$(VERSION)|g' -e 's|@MAJOR@|$(MAJOR)|g' -e 's|@MINOR@|$(MINOR)|g' \
  -e 's|@SHARED@|$(SHARED)|g' -e 's|@SONAME@|$(SONAME)|g' -e 's|@DL@|$(DL)|g'

install: check-prefix $(LIBRARIES)
	install -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(LIBDIR)/cmake/eventcore' '$(DESTDIR)$(INCLUDEDIR)/eventcore'
	install -m 755 .build/c/$(SHARED) '$(DESTDIR)$(LIBDIR)'
	ln -sf $(SHARED) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/$(SHARED_LINK)'
	install -m 644 .build/c/libeventcore.a '$(DESTDIR)$(LIBDIR)'
	install -m 644 $(HEADERS) '$(DESTDIR)$(INCLUDEDIR)/eventcore'
	@# What lies below the prefix is named by it, so that all of it can be moved. What the shell writes gets its
	@# permissions from the umask, so they are set.
	$(fill) -e 's|=$(PREFIX)/|=$${prefix}/|' scripts/package/eventcore.pc.in > '$(DESTDIR)$(LIBDIR)/pkgconfig/eventcore.pc'
	chmod 644 '$(DESTDIR)$(LIBDIR)/pkgconfig/eventcore.pc'
	for file in eventcore-config eventcore-config-version; do \
	  $(fill) scripts/package/$$file.cmake.in > '$(DESTDIR)$(LIBDIR)'/cmake/eventcore/$$file.cmake || exit 1; done
	chmod 644 '$(DESTDIR)$(LIBDIR)'/cmake/eventcore/*.cmake
	@# The loader finds what is new in /usr/local/lib by its cache alone.
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null 2>&1; then ldconfig || true; fi

uninstall: check-prefix
	rm -rf '$(DESTDIR)$(LIBDIR)/cmake/eventcore' '$(DESTDIR)$(INCLUDEDIR)/eventcore'
	rm -f '$(DESTDIR)$(LIBDIR)/pkgconfig/eventcore.pc' '$(DESTDIR)$(LIBDIR)/libeventcore.a' \
	  '$(DESTDIR)$(LIBDIR)/$(SHARED)' '$(DESTDIR)$(LIBDIR)/$(SONAME)' '$(DESTDIR)$(LIBDIR)/$(SHARED_LINK)'

amalgamation:
	scripts/amalgamate.py .build/amalgamation
