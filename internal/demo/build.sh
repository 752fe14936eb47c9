#!/bin/sh
# Builds the demo's target from internal/demo/target/ and puts these files into a directory (default: internal/demo/):
#
#   target-gcc12-llc19-amd64   the program
#   target-llc19.ll            the IR that its object was compiled from, after rewrite-statepoints-for-gc
#   target-versions            what built it; the same versions make the same bytes
#
# orders.ll is what examples/tinyvm, built with LLVM 19, dumps as Shop.total#1.ll of internal/demo/target/orders.tvm (--dump DIR).
#
# Needs gcc, binutils and llvm-19. Usage: internal/demo/build.sh [DIRECTORY]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "${1:-$here}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# From standard input and by relative names: no path of this machine gets into the files.
cd "$work"
opt-19 -passes=rewrite-statepoints-for-gc -S <"$here/target/target.ll" >target-llc19.ll
llc-19 -O2 -relocation-model=pic -filetype=obj <target-llc19.ll -o target.o
# The method that tinyvm compiled. As when tinyvm runs it, the object has the IR in it, and the name of the layout that reads its frames. That
# tinyvm_fuel is near the code spares the target a table of addresses.
sed 's/^@tinyvm_fuel = external/& dso_local/' <"$here/target/orders.ll" >orders.ll
printf simple >layout
llc-19 -O2 -relocation-model=static -filetype=obj <orders.ll -o orders.o
objcopy --add-section .reframe.ir=orders.ll --add-section .reframe.layout=layout orders.o
cp "$here"/target/*.c "$here"/target/*.h .
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -static -fno-pie -no-pie \
  -fno-stack-protector -fcf-protection=none -fno-tree-loop-distribute-patterns -fasynchronous-unwind-tables \
  -Wl,--build-id=none -Wl,--eh-frame-hdr -Wl,-z,noexecstack \
  target.c -o target-gcc12-llc19-amd64
{
  gcc --version | head -n 1
  ld --version | head -n 1
  llc-19 --version | sed -n 's/.*\(LLVM version .*\)/llc \1/p'
} >target-versions
cp target-gcc12-llc19-amd64 target-llc19.ll target-versions "$out/"
