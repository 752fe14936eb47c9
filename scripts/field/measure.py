"""measure.py STOOD REFRAME PID NAME: one row of the table of scripts/field.sh, for a running process.

Each tool is run once, for two minutes at most, while STOOD watches for how long it holds the process.
"""
import json
import re
import subprocess
import sys
import time

stood, reframe, pid, name = sys.argv[1:]
LIMIT = 120
ENDS = re.compile(r"^(_start|clone3?|__clone3?)\b")
STARTS = re.compile(r"^__libc_start_main")  # called by _start, which has no name in a program that was stripped


def run(command):
    """Returns the output of a command, its duration, and the time for which it stopped the process, in milliseconds."""
    watch = subprocess.Popen([stood, pid], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    watch.stdout.readline()
    began = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT)
        out, wall, said = done.stdout, (time.monotonic() - began) * 1000, done.stderr.strip().splitlines()[:1]
    except subprocess.TimeoutExpired:
        out, wall, said = "", None, ["not done within %d s" % LIMIT]
    pause = watch.communicate()[0].strip()
    if pause == "0.00":
        pause = "<0.2"  # it looks that often
    return out, wall, pause, "".join(said)


def row(tool, threads, out, wall, pause, said):
    """Threads are lists of names, innermost first, None for a frame without a name."""
    frames = [f for t in threads for f in t]
    if not frames:
        return "%-22s %-9s failed: %s" % (name, tool, said or out.strip()[:100] or "it printed nothing")
    ends = sum(1 for t in threads if ENDS.match(t[-1] or "") or len(t) > 1 and not t[-1] and STARTS.match(t[-2] or ""))
    return "%-22s %-9s %7d %7d %6d %9s %9.0f %9s" % (
        name, tool, len(frames), sum(1 for f in frames if f), frames.count(None), "%d/%d" % (ends, len(threads)), wall or LIMIT * 1000, pause)


def lines(out):
    """Frames of gdb and eu-stack: "#1  0x00007f… in name (…) at file" and "#1  0x00007f… name - offset"."""
    threads = []
    for line in out.splitlines():
        m = re.match(r"#(\d+)\s+(?:(0x[0-9a-f]+)\s*)?(?:in )?(.*)", line)
        if not m:
            continue
        if m[1] == "0" or not threads:
            threads.append([])
        text = m[3].strip()
        threads[-1].append(None if not text or text.startswith("??") else text)
    return threads


command = [reframe, "frames", "-p", pid, "--json"]
out, wall, pause, said = run(command)
threads = []
if out:
    for t in json.loads(out)["threads"]:
        threads.append([f.get("function") or None for f in t.get("frames") or []])
print(row("reframe", threads, out, wall, pause, said), flush=True)
for tool, command in (
    ("gdb", ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", pid, "-ex", "thread apply all bt"]),
    ("eu-stack", ["eu-stack", "-p", pid]),
):
    out, wall, pause, said = run(command)
    print(row(tool, lines(out), out, wall, pause, said), flush=True)
