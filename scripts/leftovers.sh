#!/usr/bin/env bash
# Runs a command with a temporary directory of its own and fails if it leaves anything there, or a new name in another place where
# programs leave things: /, /tmp, /var/tmp, /dev/shm, the home directory. Usage: scripts/leftovers.sh COMMAND [ARG...]
#
# Go's caches and what livetest keeps are meant to stay. LEFTOVERS_IGNORE is a regular expression (grep -E) of paths that others make at
# the same time. Its status is the command's where that fails, and 1 where something was left.
set -uo pipefail
[ $# -gt 0 ] || { sed -n '2,4p' "$0" >&2; exit 64; }

mine=$(mktemp -d)
lists=$(mktemp -d)
trap 'rm -rf "$mine" "$lists"' EXIT
chmod 1777 "$mine" # some tests run programs as another user
home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}

# names lists the places; below the home directory two levels, as programs keep things in .config and .local.
names() {
  { find / /tmp /var/tmp /dev/shm -xdev -mindepth 1 -maxdepth 1; find "$home" -xdev -mindepth 1 -maxdepth 2; } 2>/dev/null |
    grep -vE "^(/tmp/go-(build|link-)|/tmp/clr-debug|$home/\.cache/(go-build|reframe-test|staticcheck)$|$home/\.config/go$|$home/go(/|$))" |
    grep -vE "${LEFTOVERS_IGNORE:-^$}" | sort -u
}

names >"$lists/before"
TMPDIR=$mine "$@"
status=$?
names >"$lists/after"
left=$(comm -13 "$lists/before" "$lists/after"; find "$mine" -mindepth 1 -maxdepth 1)
if [ -n "$left" ]; then
  { echo "left behind by: $*"; echo "$left" | sed 's/^/  /'; } >&2
  [ $status -ne 0 ] || status=1
fi
exit $status
