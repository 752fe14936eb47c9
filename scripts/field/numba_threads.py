# numba, 16 threads: a parallel loop that does not end.
import numba
import numpy


@numba.njit(parallel=True)
def step(a, k):
    for i in numba.prange(a.shape[0]):
        x = a[i]
        for _ in range(200):
            x = x * 1.0000001 + numpy.sin(x) * k
        a[i] = x


values = numpy.ones(1 << 18)
step(values, 1e-9)
print("ready", flush=True)
while True:
    step(values, 1e-9)
