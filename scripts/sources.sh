#!/bin/sh
# Fetches the Debian source packages that the tests build, as the machine's own mirrors have them, into the user's cache
# directory: PACKAGE/ is the unpacked source. Usage: scripts/sources.sh [llvm-tests]; with llvm-tests the tests of LLVM 19 too, which are of
# 160 MB packed, in llvm-tests-19/.
#
# It needs no right to install, and changes nothing of the machine's apt: the source lists are copies in a directory of
# their own. Where all is there, nothing is called and nothing printed.
set -eu
packages="zlib bzip2 lua5.4 cmark sqlite3 lua5.1 duktape mujs giflib tcc libtommath snappy mawk"

cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache=${cache:-${TMPDIR:-/tmp}}/reframe-test/sources # where test/livetest looks
missing=
for package in $packages; do
  test -d "$cache/$package" || missing="$missing $package"
done
tests=
[ "${1-}" != llvm-tests ] || test -d "$cache/llvm-tests-19" || tests=" llvm-toolchain-19"
[ "$missing$tests" ] || exit 0

fail() {
  echo "sources: $*" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-source >/dev/null ||
  fail "apt-get or dpkg-source (package dpkg-dev) is missing; unpack the Debian sources of these into $cache/PACKAGE:$missing$tests"
echo "sources: fetching$missing$tests" >&2
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetching-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/archives/partial"

# The places that packages come from, asked for their sources: both forms of sources.list(5).
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [ ! -e "$list" ] || sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$list" >"$work/parts/$(basename "$list" .list)-src.list"
done
for list in /etc/apt/sources.list.d/*.sources; do
  [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/parts/$(basename "$list" .sources)-src.sources"
done

get() {
  apt-get -q -y -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/parts" -o Dir::State::Lists="$work/lists" \
    -o Dir::Cache="$work" -o Dir::Cache::Archives="$work/archives" -o APT::Sandbox::User= -o APT::Update::Post-Invoke-Success= \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@" </dev/null >>"$work/log" 2>&1
}
get update || { cat "$work/log" >&2; fail "no package lists"; }
for package in $missing; do
  mkdir "$work/$package"
  (cd "$work/$package" && get source "$package") || { cat "$work/log" >&2; fail "no source of $package"; }
  mv "$work/$package"/*/ "$cache/$package" # one directory, whose name has the version
done
if [ "$tests" ]; then
  mkdir "$work/llvm"
  (cd "$work/llvm" && get --download-only source llvm-toolchain-19) || { cat "$work/log" >&2; fail "no source of llvm-toolchain-19"; }
  tar -C "$work/llvm" --wildcards -xf "$work/llvm"/llvm-toolchain-19_*.orig.tar.* '*/llvm/test'
  mv "$work"/llvm/*/llvm/test "$cache/llvm-tests-19"
fi
