"""A small JIT on llvmlite (Debian: python3-llvmlite):

    python3 host.py stackmap|patchpoint [run]

compiles work(n), the sum of the squares below n, calls work(1000), and prints the result. Without `run` it waits at
i = 26, inside a call that the compiled code made, and ends after ten minutes. llvmlite.ir has no operand bundles and its passes do not
rewrite statepoints: those kinds of sites want IR that is text (host.c, host.cpp).

MCJIT registers what it compiles by itself. What else a host does for reframe is marked as in host.c.
"""
import ctypes
import os
import sys
import time

from llvmlite import binding, ir

STOP = 26


def stand():
    print(f"pid {os.getpid()} stopped at i = {STOP}", flush=True)
    time.sleep(600)
    os._exit(0)


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def square(i):
    if i == STOP and "run" not in sys.argv:
        stand()
    return i * i


i64, i32 = ir.IntType(64), ir.IntType(32)
pointer = ir.IntType(8).as_pointer()
unary = ir.FunctionType(i64, [i64])


def stackmap(b, i, acc, n):
    """A point in the code, right after a call: a frame that waits in the call is at the stackmap."""
    sq = b.call(ir.Function(b.module, unary, "square"), [i], name="sq")
    kind = ir.FunctionType(ir.VoidType(), [i64, i32], var_arg=True)
    f = ir.Function(b.module, kind, "llvm.experimental.stackmap")
    b.call(f, [i64(1), i32(0), i, acc, n])  # id, nops, values
    return sq


def patchpoint(b, i, acc, n):
    """A call, in a region of 16 bytes that the runtime may overwrite."""
    kind = ir.FunctionType(i64, [i64, i32, pointer, i32], var_arg=True)
    f = ir.Function(b.module, kind, "llvm.experimental.patchpoint.i64")
    target = ir.Function(b.module, unary, "square").bitcast(pointer)
    return b.call(f, [i64(2), i32(16), target, i32(1), i, i, acc, n], name="sq")  # id, bytes, callee, its arguments, values


def compiled(kind):
    module = ir.Module(name="work")
    module.triple = binding.get_default_triple()
    f = ir.Function(module, unary, "work")
    n, = f.args
    n.name = "n"  # (1) names: they are what the slots will be called
    entry, loop, done = (f.append_basic_block(name) for name in ("entry", "loop", "done"))
    ir.IRBuilder(entry).branch(loop)
    b = ir.IRBuilder(loop)
    i, acc = b.phi(i64, "i"), b.phi(i64, "acc")
    sq = kind(b, i, acc, n)
    acc1, i1 = b.add(acc, sq, "acc1"), b.add(i, i64(1), "i1")
    b.cbranch(b.icmp_unsigned("<", i1, n, "c"), loop, done)
    for phi, next in (i, i1), (acc, acc1):
        phi.add_incoming(i64(0), entry)
        phi.add_incoming(next, loop)
    ir.IRBuilder(done).ret(acc1)
    return module


def main():
    kinds = {"stackmap": stackmap, "patchpoint": patchpoint}
    if len(sys.argv) < 2 or sys.argv[1] not in kinds or sys.argv[2:] not in ([], ["run"]):
        sys.exit("usage: python3 host.py stackmap|patchpoint [run]")
    binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.add_symbol("square", ctypes.cast(square, ctypes.c_void_p).value)
    module = binding.parse_assembly(str(compiled(kinds[sys.argv[1]])))
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    with open("python.ll", "w") as f:  # (2) IR: after passes, of which there are none here
        f.write(str(module))
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    work = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("work"))
    print(work(1000))


main()
