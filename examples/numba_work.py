"""A program for numba_sites.py, without any code for reframe. Its compiled functions allocate, and call back into Python.

    python3 numba_work.py

works once in a second, and ends after ten minutes.
"""
import ctypes
import os
import time

import numpy
from numba import njit


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def digits(n):
    return len(str(n))


@njit("float64(int64)")
def work(n):
    shares = numpy.zeros(n)
    for i in range(n):
        shares[i] = digits(i * i * 10) * 0.5
    return shares.sum()


print(f"pid {os.getpid()} has compiled what it needs", flush=True)
for _ in range(600):
    time.sleep(1)
    work(4)
