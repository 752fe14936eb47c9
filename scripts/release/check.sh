#!/usr/bin/env bash
# Makes the release twice, each in a clone of its own with a build cache of its own, and compares every byte.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for n in first the-second-in-a-longer-path; do
  git clone -q . "$work/$n"
  (cd "$work/$n" && GOCACHE="$work/cache-$n" go run ./scripts/release -o "$work/out-$n" "$@")
  rm -rf "$work/cache-$n"
done
diff -r "$work"/out-*
(cd "$work/out-first" && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS)
