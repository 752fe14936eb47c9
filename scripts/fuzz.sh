#!/bin/sh
# Runs every fuzz target of the module, one after the other. Usage: scripts/fuzz.sh TIME, such as 30s, or 5000x for
# a number of inputs. With FUZZSEED, a number, the inputs are the same each time: one worker, nothing kept of earlier runs, and programs
# without coverage instrumentation, whose counters depend on goroutines. Such programs need no second build of all packages.
set -eu
time=${1:?usage: scripts/fuzz.sh TIME}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz workers= instrumented='-fuzz .'
if [ -n "${FUZZSEED-}" ]; then
  export GODEBUG="fuzzseed=$FUZZSEED"
  cache=$work/cache workers='-test.parallel 1' instrumented=
fi
# A package is built once for all its targets.
grep -l '^func Fuzz' -r --include='*_test.go' . | sed 's|/[^/]*$||' | sort -u >"$work/packages"
while read -r package; do
  go test -c -vet=off -ldflags=-w $instrumented -o "$work/fuzz.test" "$package" </dev/null
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$package"/*_test.go); do
    echo "fuzz $package $target"
    (cd "$package" && "$work/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.fuzzminimizetime 1x \
      $workers -test.fuzzcachedir "$cache/reframe/${package#./}" </dev/null)
  done
done <"$work/packages"
