# Runs the program that gdb was given and stops it at fixed places: for each word of places, "function,times,steps", at that call of the
# function, and that number of instructions further. Prints for each stop a line of JSON, with the path of a core, and for each physical
# frame the pc and CFA according to gdb. The command line sets places and cores, the start of the cores' names.
import json, re, gdb

for command in (
    "set pagination off", "set confirm off", "set style enabled off", "set width 0", "set debuginfod enabled off",
    "set backtrace past-main on", "set backtrace past-entry on", "set startup-with-shell off", "set breakpoint pending off",
):
    gdb.execute(command, to_string=True)


def frames():
    frame = gdb.newest_frame()
    while frame is not None:
        # Inlined functions, and those that a tail call left, have no frame of their own.
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            frame.select()
            at = re.search(r"frame at (0x[0-9a-f]+)", gdb.execute("info frame", to_string=True))
            yield {"pc": "%#x" % frame.pc(), "cfa": at.group(1) if at else "", "name": frame.name() or ""}
        frame = frame.older()


for number, place in enumerate(places.split()):
    function, times, steps = place.split(",")
    gdb.execute("starti", to_string=True)
    try:
        stop = gdb.Breakpoint(function, internal=True)
    except gdb.error:
        continue  # this compiler has made it part of others
    stop.ignore_count = int(times) - 1
    gdb.execute("continue", to_string=True)
    if not gdb.selected_inferior().pid:
        stop.delete()
        continue  # it was not called as often
    stop.delete()
    if int(steps):
        gdb.execute("stepi " + steps, to_string=True)
    core = "%s.%d" % (cores, number)
    gdb.execute("generate-core-file " + core, to_string=True)
    print(json.dumps({"place": place, "core": core, "frames": list(frames())}))
    gdb.newest_frame().select()
if gdb.selected_inferior().pid:
    gdb.execute("kill", to_string=True)
