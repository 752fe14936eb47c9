# Runs the program that gdb was given and prints, for each moment that is asked for, one line
# of JSON for each physical frame of the thread that stopped, with a core of the same moment.
# The command line sets core, the start of the cores' names, and moments, a list of what
# leads from one moment to the next: "run" up to the next trap, "step" one instruction.
import json, re, gdb

NAMES = "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()

for command in (
    "set pagination off", "set confirm off", "set style enabled off", "set width 0",
    "set backtrace past-main on", "set backtrace past-entry on",
    "handle SIGUSR1 SIGUSR2 SIGSEGV nostop noprint pass", "set use-coredump-filter off",
):
    gdb.execute(command, to_string=True)


def go(to):
    if to == "step":
        gdb.execute("stepi", to_string=True)
    else:
        gdb.execute("continue" if gdb.selected_inferior().pid else "run", to_string=True)


def show(moment):
    path = "%s.%d" % (core, moment)
    gdb.execute("generate-core-file " + path, to_string=True)
    frame, jumped = gdb.newest_frame(), []
    while frame is not None:
        # Inlined functions and frames that a tail call left share a physical frame.
        if frame.type() == gdb.TAILCALL_FRAME:
            jumped.append(frame.name())
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
                "moment": moment,
                "tid": gdb.selected_thread().ptid[1],
                "pc": "%#x" % frame.pc(),
                "cfa": at.group(1) if at else "",
                "name": frame.name() or "",
                "signal": frame.type() == gdb.SIGTRAMP_FRAME,
                "jumped": jumped,
                "registers": registers,
            }))
            jumped = []
        frame = frame.older()
    gdb.newest_frame().select()


for moment, to in enumerate(moments):
    go(to)
    show(moment)
gdb.execute("kill")
