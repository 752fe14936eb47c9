#!/usr/bin/env bash
# Prints how long the tiers of tests take, go test ./..., make check, make test and .ci/run: cold, as after go clean -testcache, and warm, right
# after that. CPU is that of all processes waited for, so that a busy machine changes it little. Usage: scripts/tiers.sh [go|check|test|ci]...
set -uo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
[ $# -gt 0 ] || set -- go check test ci
log=$(mktemp)
trap 'rm -f "$log" "$log.times"' EXIT
TIMEFORMAT='%R %U %S'
failed=0
printf '%-12s %-5s %8s %8s\n' tier cache wall/s CPU/s
for tier; do
  case $tier in
  go) command=(env -u REFRAME_TOOLS go test ./...) ;;
  check | test) command=(make "$tier") ;;
  ci) command=(.ci/run) ;;
  *) sed -n '2,3p' "$0" >&2; exit 64 ;;
  esac
  go clean -testcache
  for cache in cold warm; do
    { time "${command[@]}" >"$log" 2>&1 </dev/null; } 2>"$log.times"
    status=$?
    printf '%-12s %-5s %s\n' "${command[*]}" "$cache" "$(awk '{ printf "%8.0f %8.0f", $1, $2 + $3 }' "$log.times")"
    [ $status = 0 ] || { failed=1; tail -n 30 "$log"; }
  done
done
exit $failed
