#!/usr/bin/env bash
# Renames the module everywhere in this copy of the repository, so that it can be published under a host of your own.
# Usage: scripts/rename-module.sh PATH, for example scripts/rename-module.sh github.com/you/reframe
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] || { sed -n '2,3p' "$0" >&2; exit 64; }
to=$1
if ! [[ $to =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)+$ ]]; then
  echo "rename-module: $to is no module path: its first element needs a dot, as github.com/you/reframe has" >&2
  exit 64
fi
from=$(sed -n 's/^module //p' go.mod)
[ "$from" != "$to" ] || { echo "rename-module: the module is called $to already" >&2; exit 64; }
# Text files alone: a file with a NUL in it is binary.
grep -rIlF --exclude-dir=.git -- "$from" . | while IFS= read -r file; do
  FROM=$from TO=$to perl -pi -e 's/\Q$ENV{FROM}\E(?![A-Za-z0-9_-])/$ENV{TO}/g' "$file"
done
gofmt -w $(grep -rlF --include='*.go' --exclude-dir=.git -- "\"$to" .)
echo "$from is now $to"
