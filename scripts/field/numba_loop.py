# numba, one thread: a function compiled on the fly that calls another, and does not return.
import numba


@numba.njit(inline="never")
def inner(n):
    total = 0.0
    for i in range(n):
        total += i % 7
    return total


@numba.njit
def outer():
    total = 0.0
    while total >= 0:
        total += inner(1000000)
    return total


inner(1)
outer.compile(())
print("ready", flush=True)
outer()
