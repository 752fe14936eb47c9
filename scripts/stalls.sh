#!/usr/bin/env bash
# Stalls verbs while they watch a process: nothing reads their output, or SIGSTOP stops reframe. Prints, for each stall and verb, the processor time that the
# process got from the stall on, as a part of what an untouched copy of it got in the same time. The exit status is 1 if that was less than 90 %.
#
# It measures time, so it is not part of the tests. Run it on a machine that has a processor for each of the two.
#
# Usage: scripts/stalls.sh [SECONDS]   SECONDS is how long each stall takes (default 20)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1-20}
work=$(mktemp -d)
export CGO_ENABLED=0
running=()
# What was stopped is continued, so that it ends and its tracer with it.
stop() {
  for pid in "${running[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  for pid in "${running[@]}"; do wait "$pid" 2>/dev/null || true; done
  running=()
}
trap 'stop; rm -rf "$work"' EXIT

go build -o "$work/reframe" ./cmd/reframe
llc-19 -O2 -relocation-model=pic -filetype=obj -o "$work/tick.o" testdata/programs/tick.ll
gcc -O1 -w -Iinternal/demo/target -rdynamic -o "$work/host" testdata/programs/obj_host.c -ldl -lpthread

# used prints the processor time of a process in hundredths of a second (utime and stime of proc_pid_stat(5)).
used() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

started() {
  "$work/host" -u 0 -c 0 "$work/tick.o" 1 1000000000 >/dev/null 2>&1 &
  pid=$!
  running+=("$pid")
}

# released waits until a target gets more than half of the time of its twin: what waits for the reader has reached its bound.
released() {
  local before other
  for _ in {1..40}; do
    before=$(used "$1") other=$(used "$2")
    sleep 1.5
    [ $((2 * ($(used "$1") - before))) -lt $(($(used "$2") - other)) ] || return 0
  done
}

failed=0
# stalled STALL VERB... runs a verb on a process, stalls it, and measures.
stalled() {
  local stall=$1 target twin verb before other got want
  shift
  started && target=$pid
  started && twin=$pid
  rm -f "$work/out" && mkfifo "$work/out"
  if [ "$stall" = unread ]; then
    exec 3<>"$work/out"
  else
    cat "$work/out" >/dev/null &
    running+=($!)
  fi
  "$work/reframe" "$@" -p "$target" >"$work/out" 2>"$work/words" 3>&- &
  verb=$!
  running+=("$verb")
  sleep 3 # it attaches meanwhile
  if [ "$stall" = unread ]; then released "$target" "$twin"; else kill -STOP "$verb"; fi
  before=$(used "$target") other=$(used "$twin")
  sleep "$seconds"
  got=$(($(used "$target") - before)) want=$(($(used "$twin") - other))
  kill -0 "$verb" || { cat "$work/words" >&2 && failed=1; }
  printf '%-8s  %-32s  %3d %%\n' "$stall" "$1${2+ $2}" $((100 * got / want))
  [ $((100 * got)) -ge $((90 * want)) ] || failed=1
  stop
  [ "$stall" != unread ] || exec 3<&-
}

ir=testdata/programs/tick.ll
printf 'break tick if %%i == 5000\ncontinue\n' >"$work/session"
stalled unread trace
stalled unread trace --full
for verb in "trace" "trace --full" "verify --all --ir $ir" "debug -x $work/session --ir $ir"; do
  # shellcheck disable=SC2086 # the words are separate arguments
  stalled SIGSTOP $verb
done
exit "$failed"
