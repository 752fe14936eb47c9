# Prints a line of JSON for each physical frame of each thread of the process that gdb
# has attached to, innermost first, and one for each thread with the reason why gdb ended.
import json, re, gdb

LIMIT = 512  # frames: a walk that went wrong may not end by itself
CALLEE_SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")


def word(value):
    """The 64 bits of a value, or None if gdb has none."""
    try:
        return None if value.is_optimized_out else int(value) & (1 << 64) - 1
    except gdb.error:
        return None


def describe(frame):
    frame.select()
    at = re.search(r"frame at (0x[0-9a-f]+)", gdb.execute("info frame", to_string=True))
    stack = frame.read_register("rsp")
    try:
        top = word(gdb.Value(int(stack)).cast(WORDS).dereference())
    except gdb.error:
        top = None
    return {
        "pc": frame.pc(),
        "cfa": int(at.group(1), 16) if at else 0,
        "signal": frame.type() == gdb.SIGTRAMP_FRAME,
        "function": frame.name() or "",
        "module": gdb.solib_name(frame.pc()) or "",
        "rsp": word(stack),
        "top": top,
        "registers": {r: v for r in CALLEE_SAVED if (v := word(frame.read_register(r))) is not None},
    }


def walk(thread):
    thread.switch()
    tid = thread.ptid[1]
    frame, count, why = gdb.newest_frame(), 0, ""
    try:
        while frame is not None and count < LIMIT:
            # Inlined functions and frames that a tail call left share a physical frame.
            if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
                print(json.dumps({"tid": tid, "frame": describe(frame)}))
                count += 1
            older = frame.older()
            if older is None:
                why = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
            frame = older
    except gdb.error as error:
        why = str(error)
    print(json.dumps({"tid": tid, "end": why}))


for setting in ("pagination off", "style enabled off", "backtrace past-main on", "backtrace past-entry on", "language c"):
    gdb.execute("set " + setting)
WORDS = gdb.lookup_type("unsigned long").pointer()
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.ptid[1]):
    walk(thread)
