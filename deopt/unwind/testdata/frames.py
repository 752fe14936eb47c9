# Runs the program that gdb was given until it traps, writes a core of it and
# prints one line of JSON for each physical frame of the thread that trapped.
import json, re, gdb

for command in (
    "set pagination off", "set confirm off", "set style enabled off",
    "set backtrace past-main on", "set backtrace past-entry on",
    "handle SIGUSR1 SIGUSR2 SIGSEGV nostop noprint pass", "run",
    "set use-coredump-filter off",
):
    gdb.execute(command, to_string=True)
gdb.execute("generate-core-file " + core, to_string=True)

NAMES = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()
frame = gdb.newest_frame()
while frame is not None:
    # Inlined functions and frames that a tail call left share a physical frame.
    if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
        frame.select()
        info = gdb.execute("info frame", to_string=True)
        at = re.search(r"frame at (0x[0-9a-f]+)", info)
        registers = {}
        for name in NAMES:
            value = frame.read_register(name)
            if not value.is_optimized_out:
                registers[name] = "%#x" % (int(value) & (1 << 64) - 1)
        print(json.dumps({
            "tid": gdb.selected_thread().ptid[1],
            "pc": "%#x" % frame.pc(),
            "cfa": at.group(1) if at else "",
            "signal": frame.type() == gdb.SIGTRAMP_FRAME,
            "registers": registers,
        }))
    frame = frame.older()
gdb.execute("kill")
