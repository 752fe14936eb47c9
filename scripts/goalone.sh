#!/usr/bin/env bash
# Runs go test ./... as on a machine with Go alone: a root directory that has Go, its caches and this source, and no other program; a user without
# privileges; a kernel that denies ptrace. Requires root and gcc. Usage: scripts/goalone.sh [ARG...]   arguments of go test in place of ./...
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
[ $# -gt 0 ] || set -- ./...
goroot=$(go env GOROOT) gocache=$(go env GOCACHE) gomodcache=$(go env GOMODCACHE)
work=$(mktemp -d)
remove() {
  # A mount that reached this namespace would lead rm to the sources and the caches.
  grep -qF " $work/" /proc/self/mountinfo && { echo "goalone: mounts are left below $work" >&2; return 1; }
  rm -rf "$work"
}
trap remove EXIT

# All have their own paths there, so that the build cache serves both.
mkdir -p -m 755 "$work/root"/{bin,dev,home,proc} "$work/root"/{"$PWD","$goroot","$gocache","$gomodcache"}
mkdir -p -m 1777 "$work/root/tmp"
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
for shared in "$PWD" "$goroot" "$gocache" "$gomodcache"; do bind "$shared" "$shared"; done
for read in "$PWD" "$goroot" "$gomodcache"; do mount -o remount,bind,ro "$root/$read"; done
# In a user namespace without root, this user's files stay accessible: the build cache is shared.
env -i PATH="$goroot/bin" HOME=/home CGO_ENABLED=0 GOROOT="$goroot" GOCACHE="$gocache" GOMODCACHE="$gomodcache" GOFLAGS="${GOFLAGS-}" GOPROXY=off \
  "$(command -v unshare)" --user --map-user=65534 --map-group=65534 --root="$root" --wd="$PWD" \
  /bin/without ptrace=EPERM process_vm_readv=EPERM process_vm_writev=EPERM userfaultfd=EPERM kcmp=EPERM -- go test "$@"
END
TIMEFORMAT=%R
status=0
{ time "${own[@]}" sh "$work/inside" "$work/root" "$goroot" "$gocache" "$gomodcache" "$@" 2>&1; } 2>"$work/seconds" || status=$?
echo "go test $*: $(<"$work/seconds") s with Go alone"
exit $status
