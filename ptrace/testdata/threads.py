# Prints the registers and frames of each thread, by number, according to gdb.
import gdb

for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.ptid[1]):
    thread.switch()
    print("thread", thread.ptid[1])
    print(gdb.execute("info registers", to_string=True))
    for n in range(16):
        print(gdb.execute("p/x $ymm%d.v32_int8" % n, to_string=True))
    print(gdb.execute("info float", to_string=True))
    frame = gdb.newest_frame()
    while frame:
        print("%#x %s" % (frame.pc(), frame.name()))
        frame = frame.older()
