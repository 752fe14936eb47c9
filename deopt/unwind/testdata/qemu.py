# Lets the program that gdb is connected to run until it faults, and prints one line of JSON for
# each of its physical frames and one for each part of its memory that unwinding
# needs. Given are:
#   faults    how often it faults until there is no handler for that any more
#   general   names of registers that hold a word
#   floats    names of registers that hold a double, and expressions for those
#   writable  address and end of each part of the program that it can write to
import base64, json, re, struct, gdb

for command in ["set backtrace past-main on", "set backtrace past-entry on"] + faults * ["continue"]:
    gdb.execute(command, to_string=True)

PAGE = 4096


def registers_of(frame):
    # A register that the unwound frames did not keep is an error or is said to be optimized out.
    known = {}
    for name in general:
        value = frame.read_register(name)
        if not value.is_optimized_out:
            known[name] = int(value) & (1 << 64) - 1
    for name, expression in floats.items():
        try:
            known[name] = struct.unpack("<Q", struct.pack("<d", float(gdb.parse_and_eval(expression))))[0]
        except gdb.error:
            pass
    return known


frame = gdb.newest_frame()
while frame is not None:
    frame.select()
    try:
        text = gdb.execute("info frame", to_string=True)
    except gdb.error:
        text = ""
    at = re.search(r"frame at (0x[0-9a-f]+)", text)
    print(json.dumps({"frame": {
        "pc": frame.pc(), "cfa": int(at.group(1), 16) if at else 0, "function": frame.name() or "",
        "signal": frame.type() == gdb.SIGTRAMP_FRAME, "registers": registers_of(frame),
    }}))
    try:
        frame = frame.older()
    except gdb.error:  # it cannot go on
        break

memory = gdb.selected_inferior()


def show(addr, size):
    try:
        data = memory.read_memory(addr, size).tobytes()
    except gdb.error:
        return False
    print(json.dumps({"memory": {"start": addr, "data": base64.b64encode(data).decode()}}))
    return True


for start, end in writable:
    show(start, end - start)
# From the newest frames, which may be many, to the first word of the stack, and on to its end. After
# that QEMU's user mode has the page with the code that signal handlers return to.
page = int(gdb.parse_and_eval("*(unsigned long *)&__libc_stack_end")) // PAGE - 16
while show(page * PAGE, PAGE):
    page += 1
print(json.dumps({"trampolines": (page - 1) * PAGE}))
