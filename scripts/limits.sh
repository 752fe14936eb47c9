#!/usr/bin/env bash
# Runs verbs in control groups that limit their memory, and prints how each ended: its exit status, "stopped" where it ran until the time was over
# and then ended by itself at SIGINT, or "KILLED" where the kernel ended a process of the group because memory ran out. In parentheses: the most memory that
# the group had. The exit status is 1 if something was killed. A verb that starts its target shares the group with it.
#
# It is not part of the tests, which must not need the rights of root. Run it before a release. Each KILLED is a fault.
#
# Usage, as root: scripts/limits.sh [SECONDS]   SECONDS limits each verb (default 60)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1-60}
work=$(mktemp -d)
export CGO_ENABLED=0

group=/sys/fs/cgroup limit=memory.max peak=memory.peak
if [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
fi
group=$group/reframe-limits
[ -d /sys/fs/cgroup/memory ] || echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p "$group"
spinning=
# The group can be removed as soon as its last process is gone.
trap 'kill $spinning 2>/dev/null || true; emptied; rm -rf "$work"; rmdir "$group" 2>/dev/null || true' EXIT
failed=0

# emptied kills what a verb has left in the group: the target of one that the kernel has killed.
emptied() {
  local pid
  for pid in $(cat "$group/cgroup.procs" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
}

kills() { cat "$group"/memory.oom_control "$group"/memory.events 2>/dev/null | sed -n 's/^oom_kill //p' || true; }

# limited BYTES COMMAND... runs a command in a new group.
limited() {
  local bytes=$1 status=0 before said=
  shift
  emptied
  while [ -d "$group" ] && ! rmdir "$group" 2>/dev/null; do sleep 0.1; done
  mkdir "$group"
  echo "$bytes" >"$group/$limit"
  [ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
  [ ! -e "$group/memory.memsw.limit_in_bytes" ] || echo "$bytes" >"$group/memory.memsw.limit_in_bytes"
  before=$(kills)
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    exec timeout -s INT -k 20 "$seconds" "$@" >/dev/null 2>"$work/errors" </dev/null
  ) || status=$?
  case $status in
  124) said=stopped ;;
  *) said=$status ;;
  esac
  [ "$(kills)" = "$before" ] || { said=KILLED && failed=1; }
  printf '%-18s' "$said ($(($(<"$group/$peak") >> 20)) MiB)"
}

go build -o "$work/reframe" ./cmd/reframe
llc-19 -O2 -relocation-model=pic -filetype=obj -o "$work/tick.o" testdata/programs/tick.ll
gcc -O1 -w -Iinternal/demo/target -rdynamic -o "$work/host" testdata/programs/obj_host.c -ldl -lpthread
"$work/host" "$work/tick.o" 2 100000000 >/dev/null &
spinning=$!
program=(--ir testdata/programs/tick.ll)

limits=(64 128 256 512 1024)
printf '%-10s' verb
for mib in "${limits[@]}"; do printf '%-18s' "$mib MiB"; done
echo
while read -r verb arguments; do
  printf '%-10s' "$verb"
  for mib in "${limits[@]}"; do
    words=()
    for word in $arguments; do
      case $word in
      PID) words+=("$spinning") ;;
      MODULE) words+=("${program[@]}") ;;
      ENDLESS) words+=(-- "$work/host" "$work/tick.o" 2 100000000) ;;
      SHORT) words+=(-- "$work/host" "$work/tick.o" 2 20) ;;
      CORE) words+=("$work/$mib.core") ;;
      *) words+=("$word") ;;
      esac
    done
    limited $((mib << 20)) "$work/reframe" "$verb" "${words[@]}"
  done
  echo
done <<'VERBS'
frames -p PID MODULE
maps -p PID MODULE --check
record --record 1 --hit 3 -o CORE MODULE SHORT
explain --core CORE MODULE
resume --core CORE MODULE
trace MODULE ENDLESS
stress MODULE SHORT
verify --all MODULE ENDLESS
verify --from-entry=false MODULE ENDLESS
lint testdata/programs/tick.ll
run testdata/programs/sm_spill.ll
VERBS
exit "$failed"
