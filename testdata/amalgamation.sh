#!/bin/sh
# Makes SQLite's sqlite3.c, and sqlite3.h beside it, of its unpacked sources: amalgamation.sh SOURCES -o FILE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
sh "$1/configure" --disable-tcl --disable-readline >log 2>&1 && make sqlite3.c >>log 2>&1 || { cat log; exit 1; }
cp sqlite3.h "$(dirname "$3")/../sqlite3.h" # which is there before the other is
cp sqlite3.c "$3"
