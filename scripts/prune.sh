#!/bin/sh
# Removes what the tests have built and not used for 14 days from the user's cache directory. Sources, clients and kernels stay.
set -eu
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${cache:-${TMPDIR:-/tmp}}/reframe-test # where test/livetest looks
[ -d "$cache" ] || exit 0
# An entry's name is a hash. Its time is that of its last use (test/livetest/build.go).
find "$cache" -mindepth 1 -maxdepth 1 -type d -regextype posix-extended -regex '.*/[0-9a-f]{32,}' -mtime +14 -exec rm -rf {} +
