"""Functions that numba compiles and that print, allocate and call back into Python.

    python3 numba_calls.py DIR

puts a stackmap into each (see examples/probe_numba.py), and writes the IR of each into DIR, as it was before code was made of it: inspect_llvm shows what the
code generator left. Without DIR they are as they are, for examples/numba_sites.py. Waits for a line before it begins.
"""
import ctypes
import sys

import numpy
from llvmlite import ir
from numba import njit, objmode, types
from numba.core import cgutils, codegen
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

probed = len(sys.argv) > 1


@intrinsic
def probe(context, record, values):
    if not isinstance(record, types.IntegerLiteral):
        raise RequireLiteralValue("the id of a record is a constant")

    def generate(context, builder, signature, args):
        if not probed:
            return context.get_dummy_value()
        i64, i32 = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [i64, i32], var_arg=True)
        f = cgutils.get_or_insert_function(builder.module, kind, "llvm.experimental.stackmap")
        hidden = builder.function.args[:2]  # where the result and an exception go
        builder.call(f, [i64(record.literal_value), i32(0), *cgutils.unpack_tuple(builder, args[1]), *hidden])
        return context.get_dummy_value()

    return types.void(record, values), generate


finalize = codegen.JITCodeLibrary._finalize_specific


def written(library):
    if "__main__" in library.get_llvm_str():
        with open("%s/%d.ll" % (sys.argv[1], len(done)), "w") as out:
            out.write(library.get_llvm_str())
        done.append(library)
    finalize(library)


done = []
if probed:
    codegen.JITCodeLibrary._finalize_specific = written


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def python(i):
    return len(str(i)) + len([None] * (i % 5))


@njit("int64(int64)")
def printing(n):
    acc = 0
    for i in range(n):
        acc += i * n
        print("number", i, acc)
        probe(1, (i, acc, n))
    return acc


@njit("float64(int64)")
def allocating(n):
    probe(2, (n, n))
    a = numpy.empty(n + 3)
    for i in range(n + 3):
        a[i] = i * 0.5
    b = numpy.zeros(n + 1)
    b[0] = a[n]
    return (a[:-2] + b).sum()


@njit("int64(int64)")
def calling(n):
    acc = 0
    for i in range(n):
        probe(3, (i, acc, n))
        acc += python(i * 100 + acc) * 3
    return acc


@njit("int64(int64)")
def lists(n):
    probe(4, (n, n))
    v = [n]
    for i in range(n):
        v.append(i * i % 7)
    v.sort()
    return v[0] + len(v)


@njit("int64(int64)")
def objects(n):
    probe(5, (n, n))
    with objmode(m="int64"):
        m = len(repr(list(range(n))))
    return m + n


@njit("int64(int64)")
def texts(n):
    probe(6, (n, n))
    s = "text " + str(n)
    d = {n: s}
    return len(d[n] + s.upper())


@njit("int64(int64)")
def program(n):
    probe(7, (n, n))
    return printing(n) + calling(n) + lists(n)


functions = [printing, allocating, calling, lists, objects, texts, program]
print("ready", flush=True)
sys.stdin.readline()
print([f(n) for n in range(1, 4) for f in functions])
