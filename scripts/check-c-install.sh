#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright the EventCore authors
#
# The core outside of the package manager: installs it into a temporary prefix, and builds and runs the programs of
# Examples/C and Tests/CProgram with what is installed, by gcc and clang, with pkg-config and CMake, against the shared
# library, the static one and the amalgamation. What was installed can be moved. Under valgrind nothing is left after
# evc_shutdown; a plug-in can be unloaded; the library exports the functions of its headers, and nothing else; and an
# idle program has no thread.
#
# On Debian and its kin installs what is missing (needs root), and does no more with --install.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."

fail() { printf 'check-c-install: %s\n' "$*" >&2; exit 1; }
. scripts/root.sh

missing=()
for tool in gcc:gcc g++:g++ cmake:cmake pkg-config:pkg-config valgrind:valgrind python3:python3; do
  command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then
  command -v apt-get >/dev/null || fail "this needs ${missing[*]}"
  apt_install --no-install-recommends "${missing[@]}"
fi
[ "${1:-}" != --install ] || exit 0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
compilers=(gcc:g++)
command -v clang >/dev/null && compilers+=(clang:clang++)

step() { printf -- '-- %s\n' "$*"; }
run() { timeout 120 "$@"; }

step "install"
make -s -j2 install PREFIX="$prefix" CC=gcc
# Others can read what was installed, however strict the umask.
(umask 077 && make -s install PREFIX=/usr DESTDIR="$folder/masked" CC=gcc)
masked=$(find "$folder/masked/usr" ! -type l ! -perm -044)
[ -z "$masked" ] || fail "under umask 077 others cannot read what was installed: $masked"
for variable in PREFIX LIBDIR INCLUDEDIR; do
  if make -s install "$variable=relative" DESTDIR="$folder/refused" CC=gcc 2>"$folder/refusal"; then
    fail "a relative $variable was taken"
  fi
  grep -q "$variable is an absolute path" "$folder/refusal" || fail "a relative $variable was refused without a word"
  for sign in ' ' '&' '|' '\' '"' "'" ';' '*' '['; do
    if make -s install "$variable=/odd${sign}folder" DESTDIR="$folder/refused" CC=gcc 2>"$folder/refusal"; then
      fail "a $variable with a $sign was taken"
    fi
    grep -q "$variable has no spaces" "$folder/refusal" || fail "a $variable with a $sign was refused without a word"
  done
done
for odd in relative "/odd'folder" "/odd 'folder'"; do
  ! make -s uninstall PREFIX="$odd" DESTDIR="$folder/refused" 2>"$folder/refusal" || fail "uninstall took the PREFIX $odd"
  grep -q "uninstall: PREFIX" "$folder/refusal" || fail "uninstall refused the PREFIX $odd without a word"
done
if make -s install PREFIX=/usr DESTDIR="$folder/refused'quote" CC=gcc 2>"$folder/refusal"; then
  fail "a DESTDIR with a quote was taken"
fi
grep -q "DESTDIR has no single quote" "$folder/refusal" || fail "a DESTDIR with a quote was refused without a word"
[ ! -e "$folder/refused" ] || fail "something was installed by a refused make install"
make -s install PREFIX=/usr LIBDIR=/usr/lib/deep DESTDIR="$folder/staged" CC=gcc
[ -e "$folder/staged/usr/lib/deep/pkgconfig/eventcore.pc" ] || fail "DESTDIR was ignored"
make -s install PREFIX="$prefix" CC=gcc
version=$(pkg-config --modversion eventcore)
cat > "$folder/version.c" <<'C'
#include <eventcore/eventcore.h>
#include <stdio.h>
#if EVC_VERSION < EVC_VERSION_NUMBER(0, 1, 0) || EVC_VERSION_NUMBER(0, 1000, 0) != EVC_VERSION_NUMBER(1, 0, 0)
#error "the preprocessor compares versions"
#endif
int main(void)
{
	const uint32_t numbers[] = { EVC_VERSION, evc_version() };

	for (int i = 0; i < 2; i++)
		printf("%u.%u.%u\n", numbers[i] / 1000000, numbers[i] / 1000 % 1000, numbers[i] % 1000);
}
C

step "what was installed is moved"
moved=$folder/moved
mv "$folder/staged/usr" "$moved"
read -ra flags < <(PKG_CONFIG_PATH=$moved/lib/deep/pkgconfig \
  pkg-config --define-variable=prefix="$moved" --cflags --libs eventcore)
for flag in "-I$moved/include" "-L$moved/lib/deep"; do
  [[ " ${flags[*]} " == *" $flag "* ]] || fail "eventcore.pc of a moved folder lacks $flag: ${flags[*]}"
done
cmake -S Examples/C -B "$moved/cmake" -Deventcore_DIR="$moved/lib/deep/cmake/eventcore" -DCMAKE_C_COMPILER=gcc \
  -DCMAKE_CXX_COMPILER=g++ >/dev/null
for library in eventcore eventcore_static; do
  cmake --build "$moved/cmake" --target "fixed_step-$library" >/dev/null
  LD_LIBRARY_PATH='' run "$moved/cmake/fixed_step-$library"
done

step "what is exported"
declared=$(sed 's/static inline.*//' include/eventcore/*.h | tr '\n' ' ' |
  grep -oE 'EVC_API [^;{]*' | grep -oE '\bevc_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
exported() { nm -D --defined-only "$1" | awk '$2 ~ /^[A-Z]$/ && $3 !~ /^(_edata|_end|_init|_fini|__bss_start)$/ { print $3 }' | sort -u; }
diff <(printf '%s\n' "$declared") <(exported "$prefix/lib/libeventcore.so") ||
  fail "the library exports (>) what its headers do not declare (<), or the other way round"
readelf -d "$prefix/lib/libeventcore.so" | grep -q 'SONAME.*libeventcore\.so\.[0-9.]*\]' || fail "the library has no soname"

python3 -B -m doctest scripts/amalgamate.py
scripts/amalgamate.py "$folder/amalgamation" >/dev/null
for pair in "${compilers[@]}"; do
  cc=${pair%:*} cxx=${pair#*:}
  programs=$folder/$cc
  mkdir -p "$programs"
  warnings=(-Wall -Wextra -Wshadow -Werror)
  cxx_warnings=("${warnings[@]}" -Wold-style-cast)

  step "$cc: pkg-config, shared and static"
  read -ra cflags < <(pkg-config --cflags eventcore)
  read -ra shared < <(pkg-config --libs eventcore)
  read -ra static < <(pkg-config --static --libs eventcore | sed 's/-leventcore/-l:libeventcore.a/')
  for kind in shared static; do
    declare -n libs=$kind
    "$cc" -std=c11 "${warnings[@]}" "${cflags[@]}" "$folder/version.c" -o "$programs/version" "${libs[@]}" -lpthread
    "$cxx" -std=c++17 "${cxx_warnings[@]}" "${cflags[@]}" -fsyntax-only -x c++ "$folder/version.c"
    [ "$("$programs/version" | sort -u)" = "$version" ] ||
      fail "eventcore.pc says $version, the headers and the $kind library say $("$programs/version" | xargs)"
    "$cc" -std=c11 "${warnings[@]}" "${cflags[@]}" Examples/C/fixed_step.c -o "$programs/fixed_step-$kind" "${libs[@]}" -lpthread
    for program in typed_events timers_and_trees; do
      "$cxx" -std=c++17 "${cxx_warnings[@]}" "${cflags[@]}" "Examples/C/$program.cpp" -o "$programs/$program-$kind" "${libs[@]}" -lpthread
      run "$programs/$program-$kind"
    done
    for program in exceptions lifetimes owners; do
      "$cxx" -std=c++17 "${cxx_warnings[@]}" "${cflags[@]}" "Tests/CProgram/$program.cpp" -o "$programs/$program-$kind" "${libs[@]}" -lpthread
      run "$programs/$program-$kind"
    done
    half=("$cxx" -std=c++17 "${cxx_warnings[@]}" "${cflags[@]}" -c Tests/CProgram/exceptions_differ.cpp)
    "${half[@]}" -o "$programs/with.o"
    "${half[@]}" -fno-exceptions -fno-rtti -o "$programs/without.o"
    "$cxx" "$programs/with.o" "$programs/without.o" -o "$programs/exceptions_differ-$kind" "${libs[@]}" -lpthread
    run "$programs/exceptions_differ-$kind"
    run "$programs/fixed_step-$kind"
    "$cc" -std=gnu11 -fPIC -shared -fvisibility=hidden "${warnings[@]}" "${cflags[@]}" Tests/CProgram/plugin.c -o "$programs/plugin-$kind.so" "${libs[@]}"
  done
  "$cc" -std=gnu11 "${warnings[@]}" Tests/CProgram/host.c -o "$programs/host" -lpthread -ldl
  "$cc" -std=gnu11 "${warnings[@]}" "${cflags[@]}" Tests/CProgram/shared_core.c -o "$programs/shared_core" "${shared[@]}" -lpthread -ldl
  "$cc" -std=gnu11 -DPLUGIN -fPIC -shared "${warnings[@]}" "${cflags[@]}" Tests/CProgram/shared_core.c -o "$programs/shared_core.so" "${shared[@]}"

  step "$cc: what does not compile says why"
  refused=("$cxx" -std=c++17 "${cxx_warnings[@]}" "${cflags[@]}" -fsyntax-only Tests/CProgram/refused.cpp)
  "${refused[@]}"
  sed -n 's|^#.*if REFUSED == ||p' Tests/CProgram/refused.cpp | while read -r number _ sentence; do
    ! "${refused[@]}" -DREFUSED="$number" 2>"$folder/refusal" || fail "refused.cpp compiles where it is to say: $sentence"
    grep -q "error: .*$sentence" "$folder/refusal" || fail "refused.cpp does not say: $sentence"
  done
  ! "${refused[@]}" -std=c++14 2>"$folder/refusal" || fail "eventcore.hpp compiles as C++14"
  grep -q "error: .*eventcore.hpp needs C++17" "$folder/refusal" || fail "eventcore.hpp does not say that it needs C++17"

  step "$cc: the amalgamation"
  # Its sources are not made for one scope.
  "$cc" -std=c11 -pedantic "${warnings[@]}" -Wno-shadow -O2 -c "$folder/amalgamation/eventcore.c" -o "$programs/eventcore.o"
  mkdir -p "$programs/include/eventcore"
  cp "$folder"/amalgamation/eventcore.h* "$programs/include/eventcore"
  "$cc" -std=c11 "${warnings[@]}" -I"$programs/include" Examples/C/fixed_step.c "$programs/eventcore.o" -o "$programs/fixed_step-one" -lurcu-bp -lpthread
  for program in typed_events timers_and_trees; do
    "$cxx" -std=c++17 "${cxx_warnings[@]}" -I"$programs/include" "Examples/C/$program.cpp" "$programs/eventcore.o" -o "$programs/$program-one" -lurcu-bp -lpthread
    run "$programs/$program-one"
  done
  run "$programs/fixed_step-one"
  "$cc" -std=c11 -O2 -fPIC -shared "$folder/amalgamation/eventcore.c" -o "$programs/one.so" -lurcu-bp -lpthread
  diff <(printf '%s\n' "$declared") <(exported "$programs/one.so") || fail "the amalgamation exports something else"

  step "$cc: a plug-in is unloaded"
  for kind in shared static; do run "$programs/host" "$programs/plugin-$kind.so"; done
  run "$programs/shared_core" "$programs/shared_core.so"

  step "$cc: CMake"
  cmake -S Examples/C -B "$programs/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
  cmake --build "$programs/cmake" -j2 >/dev/null
  run ctest --test-dir "$programs/cmake" --output-on-failure | tail -n 3
done

step "posting without waiting, under a filter of system calls"
make -s .build/c-realtime CC=gcc
run .build/c-realtime | tee "$folder/realtime"
if chrt -f 1 true 2>/dev/null; then
  grep -q 'under SCHED_FIFO' "$folder/realtime" || fail "the system allows SCHED_FIFO, and the poster did not get it"
fi

step "valgrind"
gcc -std=gnu11 -O1 -Wall -Wextra -Werror -I"$prefix/include" Tests/CProgram/shutdown.c -o "$folder/shutdown" "$prefix/lib/libeventcore.a" -lurcu-bp -lpthread
check=(valgrind -q --fair-sched=try --error-exitcode=9 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all)
for program in "$folder/shutdown" "$folder/gcc/typed_events-static" "$folder/gcc/timers_and_trees-static"; do
  timeout 300 "${check[@]}" "$program" || case $? in
    124) fail "${program##*/} did not end under valgrind" ;;
    *) fail "valgrind found something in ${program##*/}" ;;
  esac
done

# What has bounds, conflation, workers, a reserve, and posts that must not wait; as short as under a sanitizer.
step "a part of the C suite under valgrind"
gcc -std=gnu11 -g -O1 -U__OPTIMIZE__ -w -Iinclude -ISources/CEventCore -ITests/CEventCoreSuite/include Tests/CProgram/run_suite.c \
  Tests/CEventCoreSuite/*.c Sources/CEventCore/*/*.c -o "$folder/suite" -lurcu-bp -lpthread
timeout 400 valgrind -q --fair-sched=try --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,possible \
  "$folder/suite" "bounded mailbox" conflation shared: reserve "must not wait" "by hand" "one cache" -million >"$folder/suite-log" 2>&1 ||
  { cat "$folder/suite-log"; fail "valgrind found something in the C suite, or it failed there"; }
tail -n 1 "$folder/suite-log"

step "the footprint, short"
scripts/measure-footprint.sh --check
echo "C library $version: ok"
