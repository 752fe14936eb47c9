#!/usr/bin/env bash
# Runs a command with a temporary directory of its own and fails if it leaves anything there, or a new name in / or /dev/shm.
# Usage: scripts/leftovers.sh COMMAND [ARG...]
#
# New names in /tmp, /var/tmp and the home directory are listed: other programs of the machine leave things there too. Go's caches and what
# livetest keeps are meant to stay. Its status is the command's where that fails, and 1 where something was left.
set -uo pipefail
[ $# -gt 0 ] || { sed -n '2,3p' "$0" >&2; exit 64; }

mine=$(mktemp -d)
lists=$(mktemp -d)
trap 'rm -rf "$mine" "$lists"' EXIT
chmod 1777 "$mine" # some tests run programs as another user
home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}

# names lists what is in places, so many levels deep.
names() { # LEVELS PLACE...
  local levels=$1
  shift
  find "$@" -xdev -mindepth 1 -maxdepth "$levels" 2>/dev/null |
    grep -vE "^(/tmp/go-(build|link-)|/tmp/clr-debug|$home/\.cache/(go-build|reframe-test|staticcheck)$|$home/\.config/go$|$home/go(/|$))" | sort -u
}
own() { names 1 / /dev/shm; }
shared() { { names 1 /tmp /var/tmp; names 2 "$home"; } | sort -u; } # programs keep things in .config and .local

own >"$lists/own"
shared >"$lists/shared"
TMPDIR=$mine "$@"
status=$?
left=$(own | comm -13 "$lists/own" -; find "$mine" -mindepth 1 -maxdepth 1)
seen=$(shared | comm -13 "$lists/shared" -)
if [ -n "$seen" ]; then
  { echo "new meanwhile, by whomever:"; echo "$seen" | sed 's/^/  /'; } >&2
fi
if [ -n "$left" ]; then
  { echo "left behind by: $*"; echo "$left" | sed 's/^/  /'; } >&2
  [ $status -ne 0 ] || status=1
fi
exit $status
