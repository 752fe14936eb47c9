#!/bin/sh
# Fetches the Linux kernel for arm64 that the tests boot in QEMU, as the machine's own mirrors have it, into the user's
# cache directory: kernel/arm64 is its image. Usage: scripts/kernel.sh
#
# It needs no right to install, and changes nothing of the machine's apt: its architectures stay as they are, since lists and
# status are in a directory of their own. Where it is there, nothing is called and nothing printed.
set -eu

cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${cache:-${TMPDIR:-/tmp}}/reframe-test/kernel # where test/livetest looks
[ ! -e "$cache/arm64" ] || exit 0

fail() {
  echo "kernel: $*" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  fail "apt-get or dpkg-deb is missing; unpack vmlinuz of Debian's linux-image-cloud-arm64 as $cache/arm64"
echo "kernel: fetching linux-image-cloud-arm64" >&2
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetching-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
: >"$work/status"

get() {
  program=$1
  shift
  "$program" -q -o Dir::State="$work" -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work" \
    -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User= -o APT::Update::Post-Invoke-Success= \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@" </dev/null 2>>"$work/log"
}
get apt-get update >>"$work/log" || { cat "$work/log" >&2; fail "no package lists"; }
# The package of that name has nothing but the name of the newest.
package=$(get apt-cache depends linux-image-cloud-arm64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
[ "$package" ] || fail "linux-image-cloud-arm64 names no kernel"
(cd "$work" && get apt-get download "$package" >>"$work/log") || { cat "$work/log" >&2; fail "no $package"; }
dpkg-deb --extract "$work/$package"_*.deb "$work/root"
mv "$work"/root/boot/vmlinuz-* "$cache/arm64"
