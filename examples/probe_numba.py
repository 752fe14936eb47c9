"""A stackmap in code that numba compiles (Debian: python3-numba): probe(7, (i, acc)) makes record 7 with the two values.

    python3 probe_numba.py

waits inside a call that the compiled code made, right before its probe, and ends after ten minutes.
"""
import ctypes
import os
import time

import numpy
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic


@intrinsic
def probe(context, record, values):
    if not isinstance(record, types.IntegerLiteral):
        raise RequireLiteralValue("the id of a record is a constant")

    def generate(context, builder, signature, args):
        i64, i32 = ir.IntType(64), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [i64, i32], var_arg=True)
        f = cgutils.get_or_insert_function(builder.module, kind, "llvm.experimental.stackmap")
        live = cgutils.unpack_tuple(builder, args[1])
        builder.call(f, [i64(record.literal_value), i32(0), *live])
        return context.get_dummy_value()

    return types.void(record, values), generate


@ctypes.CFUNCTYPE(None, ctypes.c_int64)
def stand(i):
    print(f"pid {os.getpid()} stopped at i = {i}", flush=True)
    time.sleep(600)


@njit("int64(int64[:])")
def work(numbers):
    acc = 0
    for i in range(len(numbers)):
        if acc > 5000:
            stand(i)
            probe(7, (i, acc))  # right behind a call, so that a frame which waits in it stands here
            break
        acc += numbers[i] * numbers[i]
    return acc


with open("numba.ll", "w") as f:
    f.write(work.inspect_llvm(work.signatures[0]))
print(work(numpy.arange(1000)))
