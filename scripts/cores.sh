#!/usr/bin/env bash
# Writes the committed cores of the demo's target at its exits, testdata/cores/*.core.zst: of LLVM's example and of the virtual machine's method.
# Run it after internal/demo/build.sh has changed the target. Requires root.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
go build -trimpath -o "$work/reframe" ./cmd/reframe
cp internal/demo/target-gcc12-llc19-amd64 "$work/target"
mkfifo "$work/input" # the target waits at its exit for a line
for name in demo vm; do
  # The core names the path of the program: make it independent of this machine.
  (cd "$work" && exec unshare -m --propagation unchanged sh -c 'mkdir -p /mnt && mount --bind . /mnt && exec env -i /mnt/target '"${name#demo}" <>"$work/input" >"$work/$name.output") &
  until grep -q ready "$work/$name.output" 2>/dev/null; do sleep 0.01; done
  "$work/reframe" record $! --ir internal/demo/target-llc19.ll --memory writable --compress --force -o "testdata/cores/$name.core.zst"
  kill $!
done
