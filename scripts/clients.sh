#!/bin/sh
# Fetches packages of the npm registry that the tests use, in the releases and with the checksums of scripts/clients/package-lock.json, into the user's cache
# directory: the client that debug adapters of Visual Studio Code are tested with, and what packages its extensions. Usage: scripts/clients.sh
#
# It needs no right to install. No script of a package is run. Where all is there, nothing is called and nothing printed.
set -eu
from=$(dirname "$0")/clients
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${cache:-${TMPDIR:-/tmp}}/reframe-test # where test/livetest looks
! cmp -s "$from/package-lock.json" "$cache/clients/package-lock.json" || exit 0

fail() {
  echo "clients: $*" >&2
  exit 1
}

command -v npm >/dev/null || fail "npm is missing: scripts/setup.sh test installs it"
echo "clients: fetching packages from the npm registry" >&2
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetching-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/clients"
cp "$from/package.json" "$from/package-lock.json" "$work/clients"
npm ci --prefix "$work/clients" --cache "$work/npm" --ignore-scripts --omit=optional --no-audit --no-fund --no-update-notifier </dev/null >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail "npm could not fetch all of it"; }
rm -rf "$cache/clients"
mv "$work/clients" "$cache/clients"
