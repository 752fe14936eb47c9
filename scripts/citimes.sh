#!/usr/bin/env bash
# Runs .ci/run in fresh clones and prints a table of its stages: seconds by the clock and of all processors, and the result.
# Usage: scripts/citimes.sh RUNS LOAD [COMMAND]
#
# LOAD processes keep the processors busy during each run; 0 is an idle machine. COMMAND replaces .ci/run. Logs of the runs that failed are kept.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1-} =~ ^[1-9][0-9]*$ && ${2-} =~ ^[0-9]+$ ]] || { sed -n '3p' "$0" >&2; exit 64; }
runs=$1 load=$2 command=${3-.ci/run}

work=$(mktemp -d)
busy=()
idle() {
  [ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null || true
  busy=()
}
trap 'idle; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

failed=0
printf '%-4s %-6s %8s %8s  %s\n' run result wall/s CPU/s stage
for ((run = 1; run <= runs; run++)); do
  clone=$work/$run
  git clone -q . "$clone"
  for ((n = 0; n < load; n++)); do
    (while :; do :; done) &
    busy+=($!)
  done
  result=passed
  TIMEFORMAT='total: %0R s, %0U s of user and %0S s of system time: all'
  { time (cd "$clone" && $command </dev/null); } >"$work/log" 2>&1 || result=failed
  idle
  # The lines that .ci/run prints after each stage, and the total.
  sed -nE 's/^(stage|total): ([0-9]+) s, ([0-9]+) s of user and ([0-9]+) s of system time: /\2 \3 \4 /p' "$work/log" |
    while read -r wall user system stage; do
      printf '%-4s %-6s %8d %8d  %s\n' "$run" "$([ "$stage" = all ] && echo $result)" "$wall" $((user + system)) "$stage"
    done
  if [ $result = failed ]; then
    failed=1
    log=$(mktemp -t "citimes-XXXXXX")
    cp "$work/log" "$log"
    echo "     log: $log"
  fi
  rm -rf "$clone"
done
exit $failed
