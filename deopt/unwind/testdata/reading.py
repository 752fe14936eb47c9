# Runs the program that gdb was given up to main, and from there one instruction at a time to
# its end. Prints a line of JSON before each: the innermost frame with all registers, two more as
# gdb finds them, and the stack from the red zone up to main's caller.
import json, gdb

for command in (
    "set pagination off", "set confirm off", "set style enabled off",
    "set backtrace past-main on", "set startup-with-shell off",
    "break *main", "run",
):
    gdb.execute(command, to_string=True)

NAMES = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()
KEPT = "rbx rbp rsp r12 r13 r14 r15".split()


def value(frame, name):
    v = frame.read_register(name)
    return None if v.is_optimized_out else "%#x" % (int(v) & (1 << 64) - 1)


def frames():
    """The innermost frame and two further out; fewer where the program's CFI leads gdb astray."""
    frame, found = gdb.newest_frame(), []
    names = NAMES
    try:
        while frame is not None and len(found) < 3:
            registers = {name: value(frame, name) for name in names}
            found.append({"pc": "%#x" % frame.pc(), "function": frame.name() or "", "registers": registers})
            frame, names = frame.older(), KEPT
    except gdb.error:
        pass
    return found


process = gdb.selected_inferior()
top = int(gdb.newest_frame().read_register("rsp")) + 256
while process.pid:
    sp = int(gdb.newest_frame().read_register("rsp"))
    stack = process.read_memory(sp - 128, max(top - sp, 0) + 128)
    print(json.dumps({"frames": frames(), "stack": bytes(stack).hex()}))
    gdb.execute("stepi", to_string=True)
