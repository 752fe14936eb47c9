#!/bin/bash
# Tries reframe on systems that compile through LLVM as they run, as a new user would, and prints what came of it: of each system, for
# reframe, gdb and eu-stack on the same process, the frames of all threads, how many of them have names and how many have none, how many
# threads were read to where they began, and how long the tool took and held the process (ms).
#
# It is not part of the tests: it installs some 2 GB of Debian 12's packages, and what comes out depends on their versions. Run it before a
# release, and look at each row where reframe has fewer frames or names than another, or holds a process for longer. Some are no fault: gdb counts
# inlined functions as frames, eu-stack calls code by the nearest symbol below it however far that is, and each tool sees another moment.
#
# Usage: scripts/field.sh [--installed] [SYSTEM…]     --installed: install nothing; SYSTEM: these alone, by their first words
#
# A system that cannot be started is a row that says so. Every step is bounded, and all that is started is stopped.
set -u

packages="gdb elfutils gcc libc6-dev python3-numba python3-llvmlite postgresql-15 clang-tools-16 clang-tools-19 python3-halide libosmesa6-dev
  mlir-16-tools faust libfaust2 pocl-opencl-icd ocl-icd-opencl-dev opencl-c-headers llvm-14 llvm-19"

installed=
if test "${1-}" = --installed; then
  installed=1
  shift
fi
wanted="$*" width=22
. "$(dirname "$0")/field/common.sh"
install

CGO_ENABLED=0 go -C "$here/.." build -o "$work/reframe" ./cmd/reframe && gcc -O2 -o "$work/stood" "$here/field/stood.c" || exit 1

# start NAME COMMAND…: runs it in a group of its own until it says that it is ready, and one second longer.
start() {
  local name=$1
  shift
  setsid timeout -k 1 900 "$@" >"$work/out" 2>&1 </dev/null &
  group=$!
  for _ in $(seq 600); do
    if grep -q '^ready' "$work/out"; then
      sleep 1
      return 0
    fi
    kill -0 "$group" 2>/dev/null || break
    sleep 0.2
  done
  failed "$name" "$(tail -1 "$work/out" | cut -c1-100)"
  stop
  return 1
}

measure() { # NAME PID
  timeout -k 1 500 python3 "$here/field/measure.py" "$work/stood" "$work/reframe" "$2" "$1" || failed "$1" "it was not measured"
}

# field NAME COMMAND…: a row for a program that says that it is ready and goes on.
field() {
  local name=$1
  asked "$name" || return
  shift
  start "$name" "$@" || return
  measure "$name" "$(pgrep -P "$group" | head -1)" # timeout's child
  stop
}

built() { # NAME SOURCE LIBRARY…: a row for a small program in C
  local name=$1 source=$2
  asked "$name" || return
  shift 2
  if gcc -O2 -w -o "$work/${source%.c}" "$here/field/$source" "$@" 2>"$work/out"; then
    field "$name" "$work/${source%.c}"
  else
    failed "$name" "$(grep -m1 error "$work/out" | cut -c1-100)"
  fi
}

postgresql() {
  local name="PostgreSQL 15"
  asked "$name" && serve "$name" || return
  setsid timeout -k 1 900 psql -X -h "$work/pg" -U postgres -c 'select sum(sqrt(i) * (i % 7)) from generate_series(1, 1000000) i, generate_series(1, 10000) g where i % 3 <> 1' >>"$work/out" 2>&1 </dev/null &
  group=$!
  sleep 10 # the rows are made first, and then joined and summed, for as long as anybody looks
  local pid
  pid=$(psql -c "select pid from pg_stat_activity where query like 'select sum%'" 2>>"$work/out" | head -1)
  if test -n "$pid"; then measure "$name" "$pid"; else failed "$name" "$(tail -1 "$work/out" | cut -c1-100)"; fi
  stop
  served
}

repl() { # RELEASE
  field "clang-repl $1" sh -c "exec clang-repl-$1 <'$here/field/repl.cpp'"
}

printf '%-22s %-9s %7s %7s %6s %9s %9s %9s\n' "system" "tool" "frames" "named" "not" "to start" "wall ms" "pause ms"
field "numba, 16 threads" env NUMBA_NUM_THREADS=16 /usr/bin/python3 "$here/field/numba_threads.py"
field "numba" /usr/bin/python3 "$here/field/numba_loop.py"
field "llvmlite" /usr/bin/python3 "$here/field/llvmlite_loop.py"
postgresql
repl 16
repl 19
field "Halide 14" /usr/bin/python3 "$here/field/halide_loop.py"
built "llvmpipe" osmesa.c -lOSMesa
field "MLIR 16" mlir-cpu-runner-16 -e main -entry-point-result=void "$here/field/loop.mlir"
built "Faust" faust.c -l:libfaust.so.2
built "pocl" opencl.c -lOpenCL
field "lli 14, MCJIT" lli-14 -jit-kind=mcjit "$here/field/loop.ll"
field "lli 19, ORC" lli-19 -jit-kind=orc "$here/field/loop.ll"
