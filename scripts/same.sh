#!/usr/bin/env bash
# Runs two builds of reframe on the same programs, and says where they differ: in JSON, in text, in exit status.
# Usage: scripts/same.sh OLD NEW, the paths of two binaries; status 1 where something differs. A change that moves code has to change nothing.
#
# Every module of testdata is linted, compiled by llc and its map listed and checked; cores of the demo and of programs under lli, which OLD records,
# are read by each verb that reads one. Times are left out.
set -uo pipefail
[ $# = 2 ] || { sed -n '2,4p' "$0" >&2; exit 64; }
old=$(realpath "$1") new=$(realpath "$2")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
llvm=${LLVM:-19}
runs=0 differ=0

# what ARGS...: one run of each build.
both() {
  for way in old new; do
    { "${!way}" "$@" </dev/null >"$work/$way.out" 2>"$work/$way.err"; echo "status $?" >>"$work/$way.err"; }
    sed -E 's/"(pid|thread|tid|took|seconds|time)": ?[0-9.e+-]+/"\1":N/g; s/\b(process|thread|pid) [0-9]+/\1 N/g; s/[0-9.]+ ?(s|ms|us|µs)\b/T/g' \
      "$work/$way.out" "$work/$way.err" >"$work/$way"
  done
  runs=$((runs + 1))
  cmp -s "$work/old" "$work/new" && return
  differ=$((differ + 1))
  echo "differs: reframe $*"
  diff "$work/old" "$work/new" | head -10
}

while read -r module; do
  both lint "$module"
  both lint "$module" --json
  object=$work/object.o
  rm -f "$object" # llc dies of some modules
  { "llc-$llvm" -filetype=obj -relocation-model=pic "$module" -o "$object"; } >"$work/llc" 2>&1
  [ -s "$object" ] || continue
  for flags in "" --json "--check" "--check --json"; do
    both maps "$object" $flags
    both maps "$object" --ir "$module" $flags
  done
done < <(find . -name '*.ll' -path '*testdata*' ! -path './.git/*' | sort)

core() {
  local core=$1
  shift
  for flags in "" --json; do
    both frames --core "$core" $flags
    both frames --core "$core" "$@" $flags
    both explain --core "$core" "$@" $flags "#0"
    both explain --core "$core" "$@" $flags "#1"
    both resume --core "$core" "$@" $flags
    both maps --core "$core" $flags
  done
}

told=$("$old" demo --keep 2>&1)
pids=($(grep -oE 'process [0-9]+' <<<"$told" | grep -oE '[0-9]+')) # of one target, or of two
pid=${pids[0]}
files=$(sed -n 's/^ *cd //p' <<<"$told")
given=(--ir "$files/target.ll" --layout "$files/target.layout.json")
if "$old" record -p "$pid" "${given[@]}" -o "$work/demo.core" >"$work/said" 2>&1; then
  core "$work/demo.core" "${given[@]}"
else
  cat "$work/said"
  differ=$((differ + 1))
fi
kill "${pids[@]}"
rm -rf "$files"

# Programs under lli, run to an exit: those of testdata that have a stackmap or a patchpoint and a main.
while read -r module; do
  timeout 20 setarch -R "$old" record --ir "$module" --hit 1 --for 5s -o "$work/lli.core" --force -- "lli-$llvm" --jit-kind=mcjit "$module" >/dev/null 2>&1 </dev/null || continue
  core "$work/lli.core" --ir "$module"
done < <(grep -lE 'call .*@llvm.experimental.(stackmap|patchpoint|deoptimize)' $(find . -name '*.ll' -path '*testdata*' ! -path './.git/*') | xargs grep -l '@main(' | sort)

echo "$runs runs of each, $differ differ"
[ "$differ" = 0 ]
