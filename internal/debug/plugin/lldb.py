"""Commands of reframe for lldb 19.

    (lldb) command script import reframe_lldb.py
    (lldb) reframe frames --ir loop.ll

"help reframe" lists the commands. "reframe lldb" prints this file.
"""

import io
import shlex
import subprocess

import lldb

settings = {"program": "reframe", "options": ""}


class Process:
    """Process is the debugger of a stub: a process that lldb has stopped."""

    name, errors = "lldb", ()

    def __init__(self, target, thread):
        self.target, self.process, self.thread = target, target.process, thread
        self.native = traced(self.process)
        self.seen = {}
        self.layout = LAYOUTS.get(target.triple.split("-")[0])

    def pid(self):
        return self.process.GetProcessID()

    def threads(self):
        rest = [t for t in self.process if t.GetThreadID() != self.thread.GetThreadID()]
        return [(t.GetThreadID(), t.GetName() or "") for t in [self.thread] + rest]

    def description(self):
        lines = ["<?xml version=\"1.0\"?>", "<!DOCTYPE target SYSTEM \"gdb-target.dtd\">", "<target>"]
        if self.layout is None:
            names = [("reframe", [(name, size) for name, size, _ in self.values(self.thread)])]
        else:
            lines += ["<architecture>%s</architecture>" % self.layout[0], "<osabi>GNU/Linux</osabi>"]
            names = self.layout[1]
        for feature, registers in names:
            lines.append("<feature name=\"%s\">" % feature)
            for name, size in registers:
                kind = {10: "i387_ext", 16: "uint128"}.get(size, "int")
                lines.append("<reg name=\"%s\" bitsize=\"%d\" type=\"%s\"/>" % (quoted(name), 8 * size, kind))
            lines.append("</feature>")
        return "\n".join(lines + ["</target>"])

    @staticmethod
    def values(thread):
        """values returns the name, the size and the bytes of each register of a thread. Bytes are None if the register is unavailable."""
        found, names = [], set()
        for group in thread.GetFrameAtIndex(0).registers:
            for register in group:
                size, error = register.GetByteSize(), lldb.SBError()
                if register.name in names or size == 0:
                    continue
                names.add(register.name)
                data = register.GetData().ReadRawData(error, 0, size)
                found.append((register.name, size, data if error.Success() and data and len(data) == size else None))
        return found

    def registers(self, tid):
        if tid not in self.seen:
            thread = self.process.GetThreadByID(tid)
            values = self.values(thread)
            if self.layout is not None:
                found = {name: data for name, _, data in values}
                values = [(name, size, self.layout[2](found, name, size)) for _, registers in self.layout[1] for name, size in registers]
            self.seen[tid], offset = [], 0
            for number, (_, size, data) in enumerate(values):
                self.seen[tid].append((number, offset, size, data))
                offset += size
        return self.seen[tid]

    def memory(self, at, size):
        """memory returns the bytes from an address on, up to the first page that lldb cannot read."""
        data, limit = b"", at + size
        while at < limit:
            error = lldb.SBError()
            # lldb reads all of a range or nothing, so large ranges are only a try.
            n = size if not data and size > PAGE else min(PAGE - at % PAGE, limit - at)
            part = self.process.ReadMemory(at, n, error)
            if error.Fail() or not part:
                if n <= PAGE:
                    return data
                size = PAGE
                continue
            data += part
            at += len(part)
        return data

    def auxv(self):
        return whole("/proc/%d/auxv" % self.pid()) if self.native else None

    def executable(self):
        return self.target.executable.fullpath or ""

    def libraries(self):
        return None

    def maps(self):
        """maps returns the mappings in the format of /proc/PID/maps. lldb knows no offsets in files, except those of modules."""
        segments = {}
        for module in self.target.module_iter():
            for section in module.section_iter():
                start = section.GetLoadAddress(self.target)
                if start != lldb.LLDB_INVALID_ADDRESS and section.GetFileByteSize():
                    segments[start & -PAGE] = (section.GetFileOffset() & -PAGE, module.platform_file.fullpath)
        text, regions, region = "", self.process.GetMemoryRegions(), lldb.SBMemoryRegionInfo()
        for i in range(regions.GetSize()):
            regions.GetMemoryRegionAtIndex(i, region)
            if not region.IsMapped() and not region.IsReadable():
                continue
            start, end = region.GetRegionBase(), region.GetRegionEnd()
            mode = "".join(c if has else "-" for c, has in (("r", region.IsReadable()), ("w", region.IsWritable()), ("x", region.IsExecutable())))
            offset, name = segments.get(start, (0, region.GetName() or ""))
            text += "%08x-%08x %sp %08x 00:00 0 %s\n" % (start, end, mode, offset, name)
        return text.encode("utf-8", "surrogateescape")

    def open(self, path):
        if self.native:
            return opened(path)
        if re.match(r"/proc/%d/(task/\d+/)?maps$" % self.pid(), path):
            return io.BytesIO(self.maps())
        if path.startswith("/proc/"):  # of another machine
            raise FileNotFoundError(2, path)
        for module in self.target.module_iter():
            if module.platform_file.fullpath == path:
                path = module.file.fullpath
        return opened(path)


PAGE = 4096


def whole(path):
    """whole returns the contents of a file, or None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def traced(process):
    """traced reports whether a server that this lldb has started traces the process, so that the process is on this machine."""
    tracer = re.search(rb"\nTracerPid:\t(\d+)", whole("/proc/%d/status" % process.GetProcessID()) or b"")
    parent = tracer and re.search(rb"\nPPid:\t(\d+)", whole("/proc/%s/status" % tracer[1].decode()) or b"")
    return bool(parent) and int(parent[1]) == os.getpid()


# Registers in gdb's order, with the sizes that gdb gives them. lldb has other names or sizes for some.

def amd64(found, name, size):
    if name.startswith("ymm"):
        data = found.get(name[:-1])
        return data[16:] if data else None
    data = found.get("rflags" if name == "eflags" else name)
    return data[:size].ljust(size, b"\0") if data else None


def arm64(found, name, size):
    data = found.get({"x29": "fp", "x30": "lr"}.get(name, name))
    return data[:size].ljust(size, b"\0") if data else None


def numbered(name, count, size, end=""):
    return [("%s%d%s" % (name, n, end), size) for n in range(count)]


LAYOUTS = {
    "x86_64": (
        "i386:x86-64",
        [
            (
                "org.gnu.gdb.i386.core",
                [(name, 8) for name in "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()]
                + [(name, 4) for name in "eflags cs ss ds es fs gs".split()]
                + numbered("st", 8, 10)
                + [(name, 4) for name in "fctrl fstat ftag fiseg fioff foseg fooff fop".split()],
            ),
            ("org.gnu.gdb.i386.sse", numbered("xmm", 16, 16) + [("mxcsr", 4)]),
            ("org.gnu.gdb.i386.linux", [("orig_rax", 8)]),  # lldb does not have it, and gdb requires it
            ("org.gnu.gdb.i386.segments", [("fs_base", 8), ("gs_base", 8)]),
            ("org.gnu.gdb.i386.avx", numbered("ymm", 16, 16, "h")),
        ],
        amd64,
    ),
    "aarch64": (
        "aarch64",
        [
            ("org.gnu.gdb.aarch64.core", numbered("x", 31, 8) + [("sp", 8), ("pc", 8), ("cpsr", 4)]),
            ("org.gnu.gdb.aarch64.fpu", numbered("v", 32, 16) + [("fpsr", 4), ("fpcr", 4)]),
        ],
        arm64,
    ),
}


class Verb:
    """Verb runs one verb of reframe on the process that lldb has stopped."""

    def __init__(self, debugger, _):
        pass

    def get_short_help(self):
        return self.text

    def get_long_help(self):
        return "%s\n\nThe flags are those of \"reframe %s\" in a shell." % (self.text, self.verb)

    def __call__(self, debugger, arguments, context, result):
        target, process = context.target, context.process
        if not process or not process.is_alive and not process.GetCoreFile():
            return result.SetError("There is no process: start or attach to one, or open a core.")
        if process.is_running:
            return result.SetError("The process is running: interrupt it first.")
        command = [settings["program"], self.verb] + shlex.split(settings["options"]) + shlex.split(arguments)
        if debugger.GetUseColor() and not os.environ.get("NO_COLOR"):
            command.append("--color=always")
        core = process.GetCoreFile().fullpath
        try:
            if core:  # lldb knows less of a core than reframe
                files = ["--exe", target.executable.fullpath] if target.executable.fullpath else []
                output = subprocess.run(command + ["--core", core] + files, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                parts, complaints, status = [output.stdout], [output.stderr], output.returncode
            else:
                parts, complaints = [], []
                status = served(Process(target, context.thread or process.GetSelectedThread()), command, parts.append, complaints.append)
        except OSError as error:
            return result.SetError("%s: %s; \"reframe program FILE\" gives another" % (settings["program"], error.strerror))
        except KeyboardInterrupt:
            return result.SetError("interrupted")
        result.AppendMessage(b"".join(parts).decode("utf-8", "replace").rstrip("\n"))
        complaint = b"".join(complaints).decode("utf-8", "replace").rstrip("\n")
        if status > 1 and complaint:
            result.SetError(complaint.replace("reframe: ", "", 1))
        elif complaint:
            result.AppendWarning(complaint)


class Frames(Verb):
    verb, text = "frames", "Show the abstract frames of every thread."


class Explain(Verb):
    verb, text = "explain", "Show how a frame was found."


class Resume(Verb):
    verb, text = "resume", "Run one frame in an interpreter."


class Record(Verb):
    verb, text = "record", "Keep this moment as a small core."


class Setting:
    """Setting shows or changes a setting of the plugin."""

    def __init__(self, debugger, _):
        pass

    def get_short_help(self):
        return self.text

    def __call__(self, debugger, arguments, context, result):
        if arguments.strip():
            settings[self.name] = arguments.strip()
        result.AppendMessage("%s: %s" % (self.name, settings[self.name]))


class Program(Setting):
    name, text = "program", "Show or set the program that the commands of reframe start."


class Options(Setting):
    name, text = "options", "Show or set the flags that all commands of reframe get, such as --ir FILE."


def __lldb_init_module(debugger, _):
    debugger.HandleCommand("command container add --overwrite -h \"Rebuild interpreter frames of code that LLVM compiled just in time.\" reframe")
    for name, kind in (("frames", Frames), ("explain", Explain), ("resume", Resume), ("record", Record), ("program", Program), ("options", Options)):
        debugger.HandleCommand("command script add --overwrite -c %s.%s reframe %s" % (__name__, kind.__name__, name))
