#!/usr/bin/env bash
# Draws doc/user/exit.png, the picture in README.md: the page that `reframe explain --html` writes of the exit in `reframe demo`. Needs
# chromium-headless-shell (scripts/setup.sh test installs it).
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/reframe" ./cmd/reframe
TMPDIR=$work "$work/reframe" demo --keep >"$work/said" 2>&1
read -ra pids < <(sed -n 's/^ *kill \([0-9 ]*\)#.*/\1/p' "$work/said")
cd "$(sed -n 's/^ *cd //p' "$work/said")"
"$work/reframe" explain "${pids[0]}" --ir target.ll --layout target.layout.json --html "$work/exit.html" '#1' >/dev/null
chromium-headless-shell --no-sandbox --hide-scrollbars --window-size=1100,1180 --screenshot="$work/exit.png" "file://$work/exit.html" >/dev/null 2>&1
cd "$OLDPWD"
cp "$work/exit.png" doc/user/exit.png
ls -l doc/user/exit.png
