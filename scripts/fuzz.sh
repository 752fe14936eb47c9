#!/bin/sh
# Runs every fuzz target of the module, one after the other. Usage: scripts/fuzz.sh TIME, such as 30s, or 5000x for
# a number of inputs.
set -eu
time=${1:?usage: scripts/fuzz.sh TIME}
cd "$(dirname "$0")/.."
find . -name '*_test.go' | sort | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    echo "fuzz $(dirname "$file") $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "$(dirname "$file")" </dev/null
  done
done
