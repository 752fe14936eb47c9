"""Commands, an unwinder and a frame filter of reframe for gdb 13 and newer.

    (gdb) source reframe_gdb.py
    (gdb) reframe frames --ir loop.ll
    (gdb) bt

"help reframe" lists the commands. "reframe gdb" prints this file.
"""

import bisect
import codecs
import io
import json
import shlex
import sys

import gdb
import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator


def output(command):
    return gdb.execute(command, to_string=True)


def native():
    """native reports whether gdb itself traces the process, so that the process is on this machine."""
    connection = gdb.selected_inferior().connection
    return connection is not None and connection.type == "native"


def identity():
    """identity identifies the selected process. A PID alone does not: two cores or two machines can have the same one."""
    inferior = gdb.selected_inferior()
    connection = inferior.connection
    return inferior.num, connection and connection.num, inferior.pid


def thread_id(thread):
    """thread_id returns the number of a thread in the kernel. Some cores have none; then it is the number of the process."""
    pid, lwp, tid = thread.ptid
    return lwp or tid or pid


class Inferior:
    """Inferior reads what is the same for all threads: the memory and the facts about the process."""

    def memory(self, at, size):
        return memory(self.inferior, at, size)

    def auxv(self):
        return self.facts.auxv

    def executable(self):
        return self.facts.executable

    def libraries(self):
        return None

    def open(self, path):
        return self.facts.open(path)


class Process(Inferior):
    """Process is the debugger of a stub. It uses gdb's commands, so an unwinder cannot use it.

    With every, it has all threads of the selected process, otherwise only the selected thread.
    """

    name, errors = "gdb", (gdb.error,)

    def __init__(self, every=True):
        self.inferior = gdb.selected_inferior()
        self.thread = gdb.selected_thread()
        self.every = every
        self.seen = {}
        self.text = None
        self.facts = Facts.now()
        self.native = self.facts.native

    def pid(self):
        return self.inferior.pid

    def threads(self):
        rest = [t for t in self.inferior.threads() if t.num != self.thread.num] if self.every else []
        return [(thread_id(t), t.name or "") for t in [self.thread] + sorted(rest, key=lambda t: t.num)]

    def description(self):
        if self.text is None:
            try:
                self.text = output("maint print xml-tdesc")
            except gdb.error:  # the target has none
                self.text = ""
            if "<reg " not in self.text:
                registers = self.raw()
                self.text = described(self.inferior.architecture(), [(n, name, size) for n, name, _, size, _ in registers if name])
        return self.text

    def shown(self, value):
        """shown returns the bytes of a register of which gdb has printed a value, and None for an unavailable register."""
        if not value.startswith("0x"):
            return None
        data = bytes.fromhex(value[2:])
        return data[::-1] if self.facts.little else data

    def raw(self):
        """raw returns the number, the name, the offset, the size and the value of each register of the selected thread that the target has."""
        values = {}
        for line in output("maint print raw-registers").splitlines():
            words = line.split()
            if len(words) > 5 and words[1].isdigit():
                values[words[1]] = self.shown(words[-1])
        registers = []
        for line in output("maint print remote-registers").splitlines():
            words = line.split()
            if len(words) < 8 or not words[-1].isdigit() or not words[-2].isdigit():
                continue
            number, offset, size = int(words[-2]), int(words[-1]), int(words[4])
            if size > 0:
                registers.append((number, words[0].strip("'"), offset, size, values.get(words[1])))
        return sorted(registers, key=lambda r: r[2])

    def registers(self, tid):
        if tid not in self.seen:
            for thread in self.inferior.threads():
                if thread_id(thread) == tid:
                    with Selected(thread):
                        self.seen[tid] = [(n, offset, size, value) for n, _, offset, size, value in self.raw()]
        return self.seen[tid]


class Selected:
    """Selected selects a thread, and afterwards the thread that was selected before."""

    def __init__(self, thread):
        self.thread = thread

    def __enter__(self):
        self.before = gdb.selected_thread()
        if self.thread.num != self.before.num:
            self.thread.switch()

    def __exit__(self, *_):
        if self.thread.num != self.before.num:
            self.before.switch()


PAGE = 4096


def memory(inferior, at, size):
    """memory returns the bytes from an address on, up to the first page that gdb cannot read."""
    try:
        return inferior.read_memory(at, size).tobytes()
    except gdb.MemoryError:
        if size <= 1:
            return b""
    data, limit = b"", at + size
    while at < limit:
        n = min(PAGE - at % PAGE, limit - at)
        try:
            data += inferior.read_memory(at, n).tobytes()
        except gdb.MemoryError:
            return data
        at += n
    return data


def described(architecture, registers):
    """described returns a target description of registers, for targets without one."""
    lines = ["<?xml version=\"1.0\"?>", "<!DOCTYPE target SYSTEM \"gdb-target.dtd\">", "<target>"]
    lines += ["<architecture>%s</architecture>" % quoted(architecture.name()), "<feature name=\"reframe\">"]
    for number, name, size in registers:
        lines.append("<reg name=\"%s\" bitsize=\"%d\" regnum=\"%d\"/>" % (quoted(name), size * 8, number))
    return "\n".join(lines + ["</feature>", "</target>"])


class Facts:
    """Facts holds what gdb knows of a process apart from memory and registers: the auxiliary vector, the mappings and the files.

    gdb prints them by commands, and a command must not run while gdb unwinds: it may need the frame that is just being found. Therefore they are
    read before, whenever the process stops.
    """

    kept = None

    @classmethod
    def now(cls):
        """now reads the facts of the selected process, outside of the unwinder."""
        cls.kept = cls()
        return cls.kept

    @classmethod
    def before(cls):
        """before returns the facts of the selected process, or None if gdb has not had an opportunity to read them."""
        if cls.kept is not None and cls.kept.identity == identity():
            return cls.kept
        # The facts of a process on this machine are in /proc, so reading them takes no command.
        return cls.now() if native() else None

    def __init__(self):
        self.identity, self.pid = identity(), gdb.selected_inferior().pid
        self.native = native()
        self.executable = (gdb.current_progspace().filename or "").replace("target:", "", 1)
        if self.native:
            self.little = sys.byteorder == "little"
            self.auxv = whole("/proc/%d/auxv" % self.pid)
            return
        self.little = "little" in output("show endian")
        self.auxv = self.auxiliary()
        self.listed = mappings()

    @property
    def maps(self):
        """maps are the mappings in the format of /proc/PID/maps, or None if gdb does not know them."""
        return whole("/proc/%d/maps" % self.pid) if self.native else self.listed

    def auxiliary(self):
        """auxiliary returns the auxiliary vector in the form that the process has in its memory."""
        try:
            text = output("info auxv")
        except gdb.error:
            return None
        size, order = gdb.selected_inferior().architecture().integer_type(8).pointer().sizeof, "little" if self.little else "big"
        data = b""
        for line in text.splitlines():
            # A string follows the address of one.
            entry = re.match(r"(\d+)\s.*\s(0x[0-9a-f]+|\d+)(?: \".*\")?$", line)
            if entry:
                data += int(entry[1]).to_bytes(size, order) + int(entry[2], 0).to_bytes(size, order)
        return data or None

    def open(self, path):
        if self.native:
            return opened(path)
        if re.match(r"/proc/%d/(task/\d+/)?maps$" % self.pid, path) and self.listed is not None:
            return io.BytesIO(self.listed)
        if path.startswith("/proc/"):  # of another machine or of another time
            raise FileNotFoundError(2, path)
        return opened(local(path))


def whole(path):
    """whole returns the contents of a file, or None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def mappings():
    """mappings returns the mappings of a core or of a remote process, or None if gdb does not know them."""
    files = []  # (start, end, permissions, offset, file)
    try:
        for line in output("info proc mappings").splitlines():
            m = re.match(r"\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s*([r-][w-][x-][ps-])?\s*(.*)$", line)
            if m:
                files.append((int(m[1], 16), int(m[2], 16), m[4] or "", int(m[3], 16), m[5].strip()))
    except gdb.error:
        pass
    listed = files
    if not files or not files[0][2]:  # a core, of which gdb lists only the files
        sections = []
        for line in output("maint info sections").partition("Core file:")[2].splitlines():
            m = re.match(r"\s*\[\d+\]\s+0x([0-9a-f]+)->0x([0-9a-f]+) at 0x[0-9a-f]+: load\w* (.*)$", line)
            if m and int(m[1], 16) < int(m[2], 16):
                flags = m[3].split()
                mode = "r" + ("-" if "READONLY" in flags else "w") + ("x" if "CODE" in flags else "-") + "p"
                sections.append((int(m[1], 16), int(m[2], 16), mode))
        listed = [part for section in sections for part in divided(section, files)]
        # Cores omit code that is in files. The files have its permissions.
        for start, end, _, offset, name in files:
            for first, last in uncovered(start, end, sections):
                listed.append((first, last, permissions(name, offset + first - start), offset + first - start, name))
    if not listed:
        return None
    lines = ["%08x-%08x %s %08x 00:00 0 %s\n" % (start, end, mode, offset, name) for start, end, mode, offset, name in sorted(listed)]
    return "".join(lines).encode("utf-8", "surrogateescape")


def divided(section, files):
    """divided divides a section of a core at the limits of the files in it."""
    start, end, mode = section
    parts = []
    for first, last, _, offset, name in sorted(files):
        if last <= start or first >= end:
            continue
        if first > start:
            parts.append((start, first, mode, 0, ""))
            start = first
        parts.append((start, min(last, end), mode, offset + start - first, name))
        start = min(last, end)
    if start < end:
        parts.append((start, end, mode, 0, ""))
    return parts


def uncovered(start, end, sections):
    """uncovered returns the parts of a range that no section of a core covers."""
    parts = []
    for first, last, _ in sorted(sections):
        if last > start and first < end:
            if first > start:
                parts.append((start, first))
            start = last
    return parts + [(start, end)] if start < end else parts


def permissions(name, offset):
    """permissions returns those with which the loader maps the part of an ELF file at an offset."""
    try:
        with opened(local(name)) as file:
            header = file.read(64)
            if header[:4] != b"\x7fELF" or header[4] != 2:
                return "r--p"
            order = "<" if header[5] == 1 else ">"
            table, (size, count) = struct.unpack_from(order + "Q", header, 32)[0], struct.unpack_from(order + "2H", header, 54)
            file.seek(table)
            for _ in range(count):
                kind, flags, at, _, _, length = struct.unpack_from(order + "2I4Q", file.read(size))
                if kind == 1 and at & -PAGE <= offset < at + length:  # PT_LOAD
                    return "".join(c if flags & bit else "-" for c, bit in (("r", 4), ("w", 2), ("x", 1))) + "p"
    except (OSError, struct.error):
        pass
    return "r--p"


def local(path):
    """local returns the path on this machine of a file of the process."""
    root = gdb.parameter("sysroot") or ""
    return path if root.startswith("target:") else root.rstrip("/") + path


class Sniffed(Inferior):
    """Sniffed is the debugger of a stub for the unwinder. It has one thread and its integer registers, and uses no command of gdb."""

    name, errors = "gdb", (gdb.error,)

    def __init__(self, frame, facts):
        self.inferior, self.facts, self.native = gdb.selected_inferior(), facts, facts.native
        self.thread = gdb.selected_thread()
        self.architecture = frame.architecture()
        self.list, offset = [], 0
        for descriptor in self.architecture.registers():
            try:
                value = frame.read_register(descriptor.name)
                size = value.type.sizeof
                if value.type.code not in SCALARS or size > 8:
                    continue
                data = None
                if not value.is_optimized_out:
                    data = (int(value.cast(integer(self.architecture, size)))).to_bytes(size, "little" if facts.little else "big")
            except (gdb.error, ValueError, RuntimeError):
                continue
            self.list.append((len(self.list), descriptor.name, offset, size, data))
            offset += size

    def pid(self):
        return self.inferior.pid

    def threads(self):
        return [(thread_id(self.thread), self.thread.name or "")]

    def description(self):
        return described(self.architecture, [(n, name, size) for n, name, _, size, _ in self.list])

    def registers(self, _):
        return [(n, offset, size, data) for n, _, offset, size, data in self.list]


SCALARS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_FLAGS)


def integer(architecture, size):
    return architecture.integer_type(size * 8, False)


# The program reframe, and its answers.


def prefix(name, text):
    """prefix makes a command that is the first word of others."""
    command = type("Prefix", (gdb.Command,), {"__doc__": text})
    command(name, gdb.COMMAND_STACK, prefix=True)


class Setting(gdb.Parameter):
    """Setting is a setting of the plugin."""

    def __init__(self, name, what, default, kind=gdb.PARAM_STRING_NOESCAPE):
        self.set_doc, self.show_doc = "Set the %s." % what, "Show the %s." % what
        self.what = what
        super().__init__("reframe " + name, gdb.COMMAND_STACK, kind)
        self.value = default

    def get_set_string(self):
        forget_stacks()
        gdb.invalidate_cached_frames()
        return ""

    def get_show_string(self, value):
        return "The %s: \"%s\"." % (self.what, value)


prefix("reframe", """Rebuild interpreter frames of code that LLVM compiled just in time.

  reframe frames --ir loop.ll           frames of every thread, with values
  reframe explain                       how a frame was found
  reframe resume --ir loop.ll -f 4      run one frame in an interpreter
  reframe record -o exit.core           keep this moment as a small core

The commands read the process, core or remote target that gdb has stopped. They take the flags of
the program reframe. "set reframe options" gives flags to all of them, such as --ir FILE, and bt
shows the values that they name.""")
prefix("set reframe", "Settings of reframe.")
prefix("show reframe", "Show the settings of reframe.")
program = Setting("program", "program that the commands of reframe start", "reframe")
options = Setting("options", "flags that all commands of reframe get, such as --ir FILE", "")


def invocation(verb, arguments):
    return [program.value, verb] + shlex.split(options.value or "") + arguments


class Verb(gdb.Command):
    """Verb runs one verb of reframe on the process that gdb has stopped."""

    def __init__(self, verb, text):
        self.verb = verb
        self.__doc__ = "%s\n\nThe flags are those of \"reframe %s\" in a shell." % (text, verb)
        super().__init__("reframe " + verb, gdb.COMMAND_STACK, gdb.COMPLETE_FILENAME)

    def invoke(self, text, _):
        self.dont_repeat()
        thread = gdb.selected_thread()
        if thread is None or not gdb.selected_inferior().pid:
            raise gdb.GdbError("There is no process: start or attach to one, or open a core.")
        for other in [thread] + list(gdb.selected_inferior().threads()):
            if other.is_running():  # in non-stop mode, only some of the threads may run
                raise gdb.GdbError("Thread %d is running: interrupt all threads first." % other.num)
        command = invocation(self.verb, shlex.split(text))
        if os.isatty(1) and gdb.parameter("style enabled") and not os.environ.get("NO_COLOR"):
            command.append("--color=always")
        level = gdb.selected_frame().level()
        try:
            with Busy():
                served(Process(), command, Writer(gdb.STDOUT), Writer(gdb.STDERR))
        except gdb.error as error:
            raise gdb.GdbError(str(error))
        except OSError as error:
            raise gdb.GdbError("%s: %s (see \"help set reframe program\")" % (program.value, error.strerror))
        finally:
            # While the unwinder was busy, gdb has found frames without it.
            gdb.invalidate_cached_frames()
            if level > 0:
                output("frame %d" % level)


class Writer:
    """Writer writes bytes in UTF-8 to one of gdb's streams."""

    def __init__(self, stream):
        self.decoder, self.stream = codecs.getincrementaldecoder("utf-8")("replace"), stream

    def __call__(self, data):
        gdb.write(self.decoder.decode(data), self.stream)


class Busy:
    """Busy disables the unwinder, which must not ask for frames while an answer is on its way."""

    depth = 0

    def __enter__(self):
        Busy.depth += 1

    def __exit__(self, *_):
        Busy.depth -= 1


# Stacks for the unwinder and for backtraces.


class Stack:
    """Stack is the stack of one thread in the JSON of reframe frames."""

    def __init__(self, thread):
        self.frames = {f["index"]: f for f in thread["frames"]}
        self.omits = "omitted" in thread
        self.places = {}
        for f in thread["frames"]:
            self.places.setdefault(int(f["pc"], 16), []).append(f)

    def at(self, pc, sp):
        """at returns the frame with a pc and a stack pointer, or None."""
        for f in self.places.get(pc, ()):
            if sp in [int(v, 16) for v in (f["registers"].get(name) for name in STACK_POINTERS) if v]:
                return f
        return None


# Names of the stack pointer and of the program counter, of the processors that reframe supports.
STACK_POINTERS = ("rsp", "sp", "r15", "r1")
PROGRAM_COUNTERS = ("rip", "pc", "pswa")

stacks = {}  # by the thread, its innermost frame, and whether it has values
code = {}  # the ranges of files in the memory of a process
failures = set()


def forget_stacks(*_):
    """forget_stacks forgets all stacks, because registers, memory or settings have changed."""
    stacks.clear()


def forget(*_):
    """forget forgets all stacks and facts, because the process has run or has other files."""
    forget_stacks()
    code.clear()
    Facts.kept = None


def stopped(*_):
    forget()
    learn()


def learn():
    # Reading mappings takes requests to a remote target. The unwinder cannot do it later.
    thread = gdb.selected_thread()
    if thread is not None and not thread.is_running() and Facts.before() is None:
        Facts.now()


def prompted():
    """prompted runs before each prompt. A recording changes registers and memory without an event ("record goto")."""
    if gdb.current_recording() is not None:
        forget_stacks()
    learn()


def asked(debugger, arguments):
    """asked returns the threads in the JSON of reframe frames, or None. It reports an error once."""
    answer, complaint = [], []
    try:
        with Busy():
            served(debugger(), invocation("frames", ["--json", "--registers"] + arguments), answer.append, complaint.append)
        return json.loads(b"".join(answer))["threads"]
    except OSError as error:
        text = "%s: %s" % (program.value, error.strerror)
    except gdb.error as error:
        text = str(error)
    except ValueError:
        text = b"".join(complaint).decode("utf-8", "replace").strip()
    if text not in failures:
        failures.add(text)
        gdb.write("warning: no frames from reframe: %s\n" % "\n".join(map(printable, text.splitlines())), gdb.STDERR)
    return None


def stack_key(newest, key):
    """stack_key returns the key of a stack of the selected thread. newest is its frame 0. "record goto" and "tfind" change it without an event."""
    place = tuple(int(newest.read_register(name)) & MASK for name in ("pc", "sp"))
    trace = gdb.convenience_variable("trace_frame")
    return identity() + (gdb.selected_thread().ptid, None if trace is None else int(trace)) + place + key


def known(key):
    """known reports whether stack has asked for a stack of the selected thread."""
    return stack_key(gdb.newest_frame(), key) in stacks


def stack(newest, key, debugger, arguments):
    """stack returns the stack of the selected thread, which it asks for once, or None."""
    key = stack_key(newest, key)
    if key not in stacks:
        threads = asked(debugger, arguments)
        stacks[key] = Stack(threads[0]) if threads else None
    return stacks[key]


def generated(pc, facts):
    """generated reports whether code is outside of the files that the process has mapped."""
    if facts.identity not in code:
        ranges = []
        for line in (facts.maps or b"").splitlines():
            words = line.split(None, 5)
            if b"x" in words[1] and len(words) == 6 and not re.match(rb"/memfd:|/dev/|/SYSV|//|\[(?!v)|.* \(deleted\)$", words[5]):
                ranges.append(tuple(int(n, 16) for n in words[0].split(b"-")))
        code[facts.identity] = sorted(ranges)
    n = bisect.bisect(code[facts.identity], (pc, 1 << 64)) - 1
    return n < 0 or pc >= code[facts.identity][n][1]


class FrameId:
    """FrameId identifies a frame for gdb, by its CFA and by its function."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Unwinder(gdb.unwinder.Unwinder):
    """Unwinder finds the callers of JIT code of which gdb knows no CFI. reframe finds all frames of a stack at once."""

    def __init__(self):
        super().__init__("reframe")

    def __call__(self, pending):
        if Busy.depth or not self.enabled:
            return None
        facts = Facts.before()
        if facts is None:
            return None
        pc, sp = (int(pending.read_register(name)) & MASK for name in ("pc", "sp"))
        if not generated(pc, facts):
            return None
        # gdb.newest_frame cannot return frame 0 while gdb still unwinds it.
        newest = pending if pending.level() == 0 else gdb.newest_frame()
        sniffed = lambda: Sniffed(newest, facts)
        found = stack(newest, ("registers",), sniffed, [])
        if found is not None and found.omits and found.at(pc, sp) is None:
            found = stack(newest, ("registers", "all"), sniffed, ["--depth=all"])
        here = found and found.at(pc, sp)
        if not here or here["kind"] != "jit":
            return None
        caller = found.frames.get(here["index"] + 1)
        if caller is None and found.omits:
            found = stack(newest, ("registers", "all"), sniffed, ["--depth=all"])
            caller = found and found.frames.get(here["index"] + 1)
        if "guess" in (caller or here):
            return None  # gdb would show the guess as certain
        if caller and caller["rule"] == "cfi" and "<" in gdb.format_address(pc):
            return None  # gdb has read the same CFI
        start = pc - here["offset"] if "offset" in here else pc
        info = pending.create_unwind_info(FrameId(gdb.Value(int(here.get("cfa", hex(sp)), 16)), gdb.Value(start)))
        if caller is None:  # the outermost frame, or the last one that was found
            return info
        for name, value in list(caller["registers"].items()) + [(name, caller["pc"]) for name in PROGRAM_COUNTERS]:
            try:
                kind = pending.read_register(name).type
                info.add_saved_register(name, gdb.Value(int(value, 16)).cast(kind))
            except (ValueError, gdb.error):
                continue  # gdb has no register of this name
        return info


MASK = (1 << 64) - 1


class Filter:
    """Filter shows the values of JIT frames in backtraces, their names, and the frames of a virtual machine."""

    name, priority, enabled = "reframe", 50, True

    def filter(self, frames):
        if Facts.before() is None:
            Facts.now()
        return map(self.decorated, frames)

    @staticmethod
    def decorated(shown):
        frame = shown.inferior_frame()
        if Busy.depth or frame.type() != gdb.NORMAL_FRAME:
            return shown
        # A native frame needs a mark only after JIT code, whose frame has asked for the stack.
        jit = generated(frame.pc(), Facts.before())
        if not jit and not known(("values",)):
            return shown
        newest = gdb.newest_frame()
        found = stack(newest, ("values",), lambda: Process(every=False), [])
        pc, sp = frame.pc(), int(frame.read_register("sp")) & MASK
        if found is not None and found.omits and found.at(pc, sp) is None:
            found = stack(newest, ("values", "all"), lambda: Process(every=False), ["--depth=all"])
        here = found and found.at(pc, sp)
        if not here or not jit and "guess" not in here:
            return shown
        return Abstract(shown, here) if jit else Guess(shown, here)


class Guess(FrameDecorator):
    """Guess is a frame as gdb shows it, with a mark that it may not exist."""

    def __init__(self, shown, here):
        super().__init__(shown)
        self.here = printable(here)

    def function(self):
        name = super().function()
        if not isinstance(name, str):
            name = self.here.get("demangled") or self.here.get("function") or "??"
        return "%s [a guess]" % printable(name)

    def filename(self):
        return printable(super().filename())


def printable(value):
    """printable returns a value without control characters in its texts. They come from the process or its files, and the terminal would obey them."""
    if isinstance(value, str):
        return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", lambda m: "\\x%02x" % ord(m[0]), value)
    if isinstance(value, list):
        return [printable(v) for v in value]
    if isinstance(value, dict):
        return {printable(k): printable(v) for k, v in value.items()}
    return value


class Abstract(FrameDecorator):
    """Abstract is a frame with the name and the values that reframe found."""

    def __init__(self, shown, here):
        super().__init__(shown)
        self.here = printable(here)

    def function(self):
        name = self.here.get("demangled") or self.here.get("function") or super().function()
        if "resume" in self.here and isinstance(name, str):
            name = "%s -> %s, block %%%s" % (name, self.here["resume"]["function"], self.here["resume"]["block"])
        if not isinstance(name, str):  # an address, for which gdb shows the symbol
            symbol = re.search(r" <(.+?)(\+\d+)?>$", gdb.format_address(name), re.DOTALL) if name is not None else None
            if symbol and "guess" not in self.here and printable(symbol[1]) == symbol[1]:
                return name
            name = symbol[1] if symbol else "??"
        name = printable(name)  # gdb does not escape names of symbols
        return name if "guess" not in self.here else "%s [a guess]" % name

    def frame_args(self):
        if self.here.get("vm", {}).get("frames"):
            return None  # the frames below have the values
        slots = self.here.get("slots")
        return [Argument(s.get("name") or "#%d" % s["index"], s) for s in slots] if slots else super().frame_args()

    def frame_locals(self):
        variables = self.here.get("direct")
        return [Argument(v.get("variable") or v.get("name") or v["address"], v) for v in variables] if variables else super().frame_locals()

    def source(self):
        return (self.here.get("source") or [{}])[-1]

    def filename(self):
        return printable(super().filename()) or self.source().get("file")

    def line(self):
        return super().line() or self.source().get("line")

    def elided(self):
        frame = self.inferior_frame()
        inner = [Inner(frame, s.get("function", "??"), [], s.get("file"), s.get("line")) for s in self.here.get("source", [])[:-1]]
        for f in self.here.get("vm", {}).get("frames", []):
            name = f.get("method", "??") + (" at %d" % f["position"] if "position" in f else "")
            values = [("local", v) for v in f.get("locals", [])] + [("stack", v) for v in f.get("stack", [])]
            arguments = [Argument(v.get("name") or "%s[%d]" % (place, v["index"]), v) for place, v in values]
            arguments += [Argument(name, v) for name, v in f.get("extra", {}).items()]
            inner.append(Inner(frame, name, arguments, None, None))
        return inner + list(super().elided() or []) or None


class Inner(FrameDecorator):
    """Inner is a frame that a frame of the machine's stack contains: of an inlined function, or of a virtual machine."""

    def __init__(self, frame, name, arguments, filename, line):
        super().__init__(frame)
        self.parts = name, arguments, filename, line

    function = lambda self: self.parts[0]
    frame_args = lambda self: self.parts[1] or None
    filename = lambda self: self.parts[2]
    line = lambda self: self.parts[3]
    address = frame_locals = elided = lambda self: None


class Argument:
    """Argument is a value in a backtrace."""

    def __init__(self, name, value):
        self.name, self.slot = name, value

    def symbol(self):
        return self.name

    def value(self):
        text = self.slot.get("value") or self.slot.get("hex") or "<%s>" % (self.slot.get("reason") or self.slot.get("status", "unavailable"))
        if self.slot.get("status") == "guess":
            text += " [a guess]"
        if re.match(r"-?\d{1,18}$", text):
            return gdb.Value(int(text))
        return Text.value(text)


class Text:
    """Text prints text in the place of a value, as a pretty-printer.

    gdb shows only scalar values among the arguments of a frame. Therefore the value is a number with a type that programs hardly use, and this
    table has its text.
    """

    FIRST, texts = 0x7265667261 << 24, []

    @classmethod
    def kind(cls):
        return gdb.selected_inferior().architecture().integer_type(64, False).const().volatile()

    @classmethod
    def value(cls, text):
        if text not in cls.texts:
            cls.texts.append(text)
        return gdb.Value(cls.FIRST + cls.texts.index(text)).cast(cls.kind())

    @classmethod
    def printer(cls, value):
        if value.type.code == gdb.TYPE_CODE_INT and value.type.sizeof == 8 and value.type == cls.kind():
            n = int(value) - cls.FIRST
            if 0 <= n < len(cls.texts):
                return cls(cls.texts[n])
        return None

    def __init__(self, text):
        self.text = text

    def to_string(self):
        return self.text


def install():
    for verb, text in (
        ("frames", "Show the abstract frames of every thread."),
        ("explain", "Show how a frame was found."),
        ("resume", "Run one frame in an interpreter."),
        ("record", "Keep this moment as a small core."),
    ):
        Verb(verb, text)
    for name in ("memory_changed", "register_changed"):
        getattr(gdb.events, name).connect(forget_stacks)
    for name in ("cont", "inferior_call", "exited", "new_objfile", "clear_objfiles"):
        getattr(gdb.events, name).connect(forget)
    gdb.events.stop.connect(stopped)
    gdb.events.before_prompt.connect(prompted)
    gdb.unwinder.register_unwinder(None, Unwinder(), replace=True)
    gdb.frame_filters[Filter.name] = Filter()
    gdb.pretty_printers.append(Text.printer)
    if gdb.selected_thread() is not None:
        Facts.now()


install()
