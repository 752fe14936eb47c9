#!/usr/bin/env bash
# Runs go test ./... as on a machine with Go alone: a root directory that has Go, its caches and this source, and no other program; a user without
# privileges; a kernel that denies ptrace. Fails if a test fails or if the run takes more than 60 s. Requires root and gcc.
# Usage: scripts/goalone.sh [ARG...]   arguments of go test in place of ./...
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
[ $# -gt 0 ] || set -- ./...
goroot=$(go env GOROOT) gocache=$(go env GOCACHE) gomodcache=$(go env GOMODCACHE)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/root"/{bin,dev,proc,source,tmp} "$work/root"/{"$goroot","$gocache","$gomodcache"}
gcc -O1 -static -o "$work/root/bin/without" testdata/standins/without.c
go mod download

# The mounts are in a namespace of this command. Without a mount point at / (chroot(1)) the propagation of mounts cannot be changed.
own=(unshare -m)
"${own[@]}" true 2>/dev/null || own+=(--propagation unchanged)
cat >"$work/inside" <<'END'
set -eu
root=$1 goroot=$2 gocache=$3 gomodcache=$4
shift 4
bind() { mount --rbind "$1" "$root/$2"; }
bind /dev dev
bind /proc proc
bind "$PWD" source
bind "$goroot" "$goroot"
bind "$gocache" "$gocache"
bind "$gomodcache" "$gomodcache"
for read in source "$goroot" "$gomodcache"; do mount -o remount,bind,ro "$root/$read"; done
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -m 700 "$root/tmp/home"
# In a user namespace without root, this user's files stay accessible: the build cache is shared.
env -i PATH="$goroot/bin" HOME=/tmp/home CGO_ENABLED=0 GOROOT="$goroot" GOCACHE="$gocache" GOMODCACHE="$gomodcache" GOFLAGS="${GOFLAGS-}" GOPROXY=off \
  "$(command -v unshare)" --user --map-user=65534 --map-group=65534 --root="$root" --wd=/source \
  /bin/without ptrace=EPERM process_vm_readv=EPERM process_vm_writev=EPERM userfaultfd=EPERM kcmp=EPERM -- go test "$@"
END
TIMEFORMAT=%R
status=0
{ time "${own[@]}" sh "$work/inside" "$work/root" "$goroot" "$gocache" "$gomodcache" "$@" 2>&1; } 2>"$work/seconds" || status=$?
echo "go test $*: $(<"$work/seconds") s with Go alone"
exit $status
