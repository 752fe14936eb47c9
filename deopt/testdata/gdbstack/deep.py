# Python recursion, through a C function that calls back, into a sleep; and a thread that waits for a lock.
import ctypes, threading, time

libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def sleeper(*_):
    print("ready", flush=True)
    time.sleep(86400)
    return 0


class Key:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return called_back(3)


def called_back(n):
    if n:
        return max([n], key=lambda _: called_back(n - 1))
    numbers = (ctypes.c_int * 4)(4, 3, 2, 1)
    return libc.qsort(numbers, 4, 4, COMPARE(sleeper))


def down(n):
    return down(n - 1) if n else sorted([Key(2), Key(1)])


lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
time.sleep(0.05)
down(20)
