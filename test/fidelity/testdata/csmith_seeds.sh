#!/bin/sh
# Writes csmith.seeds: the first 300 seeds, from 1, whose program ends within a second as native code, compiled by
# clang 14 at -O0. About one in ten never ends.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seed=0 found=0
while [ $found -lt 300 ]; do
  seed=$((seed + 1))
  csmith -s $seed -o "$work/program.c" >"$work/log"
  clang-14 -O0 -w -I/usr/include/csmith -o "$work/program" "$work/program.c"
  status=0
  timeout 1 "$work/program" >"$work/log" || status=$?
  if [ $status -ne 124 ]; then # what timeout(1) ends with when it had to
    found=$((found + 1))
    echo $seed
  fi
done >"$work/seeds"
mv "$work/seeds" csmith.seeds
