#!/bin/sh
# Installs what a make target needs and is missing. Usage: scripts/setup.sh demo|test
#
# The demo needs Go alone. The tests need the LLVM releases they run as live processes, other programs and machines
# that they look into, and the tools whose answers they compare with. Where all is there, nothing is called and nothing printed.
set -eu

# have PACKAGE: is what the tests use of this Debian package there? By what it provides, not by name: a machine
# may have it from elsewhere.
have() {
  case $1 in
  llvm-*-dev)
    config=llvm-config-$(echo "$1" | tr -dc 0-9)
    command -v "$config" && test -e "$("$config" --includedir)/llvm-c/Core.h" && "$config" --link-shared --libs core
    ;;
  llvm-*)
    for tool in lli llc opt llvm-config llvm-readobj; do command -v "$tool-${1#llvm-}" || return 1; done
    ;;
  lld-*) command -v "ld.lld-${1#lld-}" && command -v "ld64.lld-${1#lld-}" && command -v "lld-link-${1#lld-}" ;;
  elfutils) command -v eu-stack ;;
  libclang-rt-*-dev)
    clang=clang-$(echo "$1" | tr -dc 0-9)
    test -e "$("$clang" --rtlib=compiler-rt --print-libgcc-file-name)" && test -e "$("$clang" -print-resource-dir)/share/cfi_ignorelist.txt"
    ;;
  clang-tools-*) command -v "clang-repl-${1#clang-tools-}" ;;
  python3-numba) /usr/bin/python3 -c 'import llvmlite.binding, numba' ;;
  python3-lldb-*) test -d "$(lldb-"${1#python3-lldb-}" -P)/lldb" ;;
  libcsmith-dev) test -e /usr/include/csmith/csmith.h ;;
  dpkg-dev) command -v dpkg-source ;;
  bash-completion) test -e /usr/share/bash-completion/bash_completion ;;
  binutils) command -v ld && command -v objdump ;;
  nodejs) command -v node ;;
  emacs-nox) command -v emacs ;;
  elpa-dap-mode) ls /usr/share/emacs/site-lisp/elpa-src/dap-mode-*/dap-mode.el ;;
  tcl) command -v tclsh ;;
  default-jdk-headless) command -v javac ;;
  rpm) command -v rpm && command -v rpm2archive ;;
  util-linux) command -v unshare ;;
  locales) test -e /usr/share/i18n/locales/tr_TR ;; # of which scripts/anywhere.sh makes its own
  qemu-user) command -v qemu-aarch64 && command -v qemu-s390x && command -v qemu-i386 && command -v qemu-arm ;;
  qemu-system-arm) command -v qemu-system-aarch64 ;;
  gcc-*-linux-gnu) command -v "${1#gcc-}-gcc" ;;
  libc6-dev-arm64-cross) test -e /usr/aarch64-linux-gnu/include/stdio.h ;;
  libc6-dev-ppc64el-cross) test -e /usr/powerpc64le-linux-gnu/include/stdio.h ;;
  libc6-dev-ppc64-cross) test -e /usr/powerpc64-linux-gnu/include/stdio.h ;;
  libc6-dev-*-cross) machine=${1#libc6-dev-} && test -e "/usr/${machine%-cross}-linux-gnu/include/stdio.h" ;;
  libc6-dev-i386) test -e /usr/include/gnu/stubs-32.h && test -e /usr/lib32/crt1.o ;;
  lib32gcc-*-dev) test -e "$(clang-19 -m32 --print-libgcc-file-name)" ;;
  libc6-dev) test -e /usr/include/stdio.h && test -e /usr/include/linux/futex.h ;;
  *) command -v "$1" ;;
  esac >/dev/null 2>&1
}

fail() {
  echo "setup: $*" >&2
  exit 1
}

case ${1-} in
demo) packages= ;;
test)
  packages="llvm-14 llvm-14-dev llvm-16 llvm-19 llvm-19-dev lld-19 llvm-22 llvm-22-dev gdb elfutils gcc g++ libc6-dev binutils python3 make git"
  # Programs that the interpreter runs, and what makes them; scripts/sources.sh fetches others.
  packages="$packages clang-14 libclang-rt-14-dev clang-19 libclang-rt-19-dev csmith libcsmith-dev dpkg-dev libc6-dev-i386 lib32gcc-12-dev"
  # What else reads cores and compresses them, and disks that are full.
  packages="$packages lldb-19 python3-lldb-19 gdbserver valgrind zstd util-linux mount locales"
  # Shells that complete the command line, and what reads manual pages.
  packages="$packages bash-completion zsh fish mandoc"
  # JIT hosts of examples/; numba brings llvmlite.
  packages="$packages clang-tools-19 python3-numba"
  # Clients of the debug adapter; scripts/clients.sh fetches another.
  packages="$packages npm emacs-nox elpa-dap-mode"
  # What makes SQLite's sources one file.
  packages="$packages tcl"
  # What reads the packages of a release.
  packages="$packages rpm"
  # What shows pages of HTML.
  packages="$packages chromium-headless-shell"
  # Programs whose stacks are unwound, and machines that are not at hand.
  packages="$packages nodejs default-jdk-headless qemu-user qemu-system-arm gdb-multiarch"
  for machine in aarch64:arm64 powerpc64le:ppc64el powerpc64:ppc64 riscv64:riscv64 s390x:s390x; do
    packages="$packages gcc-${machine%:*}-linux-gnu libc6-dev-${machine#*:}-cross"
  done
  ;;
*) fail "usage: scripts/setup.sh demo|test" ;;
esac

command -v go >/dev/null || fail "Go is missing: install Go 1.26 or later (https://go.dev/dl) and put it on the PATH"

# Other releases of Go build hosts for tests, and tests run dlv. go keeps all of them in its module cache.
if [ "$1" = test ]; then
  while read -r release; do
    GOTOOLCHAIN=$release go version >/dev/null || fail "go could not download $release"
  done <"$(dirname "$0")/../test/livetest/toolchains.txt"
  (cd "$(dirname "$0")/../test/livetest/dlv" && go list -deps github.com/go-delve/delve/cmd/dlv >/dev/null) || fail "go could not download the modules of dlv"
fi

missing=
for package in $packages; do
  have "$package" || missing="$missing $package"
done
[ "$missing" ] || exit 0

command -v apt-get >/dev/null || fail "install these (names of Debian 12 packages), then run again:$missing"
if [ "$(id -u)" = 0 ]; then
  root=
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
  root=sudo
else
  fail "no right to install; as root run: apt-get install$missing"
fi

echo "setup: installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
get() { $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >>"$log" 2>&1; }
# A slim image has no manual pages, and the JDK's postinst fails where it cannot link its own.
$root mkdir -p /usr/share/man/man1
# The lists may be missing or out of date; they are fetched only if so.
# $missing is a list of words.
# shellcheck disable=SC2086
get install --no-install-recommends $missing ||
  { get update && get install --no-install-recommends $missing; } ||
  { cat "$log" >&2; fail "apt-get could not install all of:$missing"; }

for package in $missing; do
  have "$package" || fail "$package is installed but what the tests need of it is not on the PATH"
done
