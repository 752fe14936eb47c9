#!/usr/bin/env bash
# Builds reframe for every system and architecture of Go on which its offline verbs are to work, and vets one of each kind: another
# system, words of 32 bits, big-endian. Tests are vetted on Linux alone, which is what they and the benchmarks are for.
# Usage: scripts/cross.sh [share]; the share is one of those that are vetted, chosen by FIDELITY or test/livetest/selection.txt, as the
# cases of tests are.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

failed=0
targets='^(linux|darwin|windows)/'
if [ "${1-}" = share ]; then
  of=(linux/386 linux/arm linux/arm64 linux/s390x darwin/arm64 windows/amd64)
  selected=${FIDELITY:-$(<test/livetest/selection.txt)}
  number=$(printf %s "$selected" | cksum)
  targets="^${of[${number%% *} % ${#of[@]}]}\$"
  echo "cross: ${targets//[^a-z0-9\/]/} (FIDELITY=$selected selects the same)"
fi
for target in $(go tool dist list | grep -E "$targets"); do
  export GOOS=${target%/*} GOARCH=${target#*/}
  go build -o /dev/null ./cmd/reframe || { echo "$target: does not build"; failed=1; }
  case $target in
  linux/386 | linux/arm64)
    go vet ./... || { echo "$target: vet"; failed=1; }
    ;;
  linux/arm | linux/s390x | darwin/arm64 | windows/amd64)
    # Files, not packages: vet takes the tests of a package with it.
    while read -r dir files; do
      (cd "$dir" && go vet $files) || { echo "$target: vet $dir"; failed=1; }
    done < <(go list -e -f '{{if .GoFiles}}{{.Dir}} {{join .GoFiles " "}}{{end}}' ./... | grep -vE '/(bench|test/livetest|test/clitest|test/tinyvmtest|test/frametest) ')
    ;;
  esac
done
exit $failed
