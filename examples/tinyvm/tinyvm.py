#!/usr/bin/env python3
"""tinyvm's byte code once more, in Python:

    python3 tinyvm.py [--fuel N] PROGRAM.tvm    runs a program as `tinyvm --interpret` does
    python3 tinyvm.py --serve PROGRAM.tvm       goes on in frames for `reframe resume --with`; doc/user/protocol.md

vm.h says what values and objects are, and parse.cpp what a program is. Here an interpreter has a Heap: one of its own, or, in Remote, the one of the
process that the frames are of, which is read where it is needed and gets what was stored when all is done.
"""
import argparse
import collections
import math
import operator
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "protocol"))
import reframe_vm  # noqa: E402
from reframe_vm import Malformed, Unsupported, number, signed  # noqa: E402

MAX_LOCALS, MAX_DEPTH = 64, 200
NULL, INT_TAG, DOUBLE_OFFSET = 0, 0xffff << 48, 1 << 48
LOCK_AT, FIELDS_AT, WORD, WHY_SIZE = 8, 16, 8, 128
HEAP, HEAP_SIZE = 0x100000000000, 1 << 30
NAMES_AT = 0x100000000000  # where tinyvm has its names, and behind them its objects


# Values.

def box_int(i):
    return INT_TAG | i & 0xffffffff


def box_double(d):
    bits = 0x7ff8 << 48 if math.isnan(d) else struct.unpack("<Q", struct.pack("<d", d))[0]
    return bits + DOUBLE_OFFSET


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def is_int(v):
    return v >> 48 == 0xffff


def is_ref(v):
    return v >> 48 == 0


def as_number(v):
    return signed(v, 32) if is_int(v) else double(v - DOUBLE_OFFSET)


def truth(v):
    return v != NULL and (is_ref(v) or as_number(v) != 0)


def divide(x, y):
    """Divides like the processor, also by 0."""
    x, y = float(x), float(y)
    if y != 0:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)


OPERATIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": divide, "lt": operator.lt, "le": operator.le, "eq": operator.eq}


def arithmetic(op, a, b):
    """Returns None for invalid operands. An int result that is too large becomes a double, rounded once, like the product of two doubles."""
    if is_ref(a) or is_ref(b):
        return box_int(a == b) if op == "eq" else None
    v = OPERATIONS[op](as_number(a), as_number(b))
    return box_int(v) if isinstance(v, int) and -1 << 31 <= v < 1 << 31 else box_double(float(v))


# Programs.

class Class:
    def __init__(self, name, fields):
        self.name, self.fields, self.size = name, fields, FIELDS_AT + WORD * len(fields)


class Instruction:
    def __init__(self, op, a=None):
        self.op = op  # the word in the program; const for all three that make constants
        self.a = a    # number of a local, target of a jump, constant, name of a field, class, method


class Method:
    def __init__(self, name):
        self.name, self.args, self.locals, self.code = name, 0, 0, []
        self.at = {}  # of the positions that are reached: how deep the operand stack is, and how many monitors are held


# The numbers of values that instructions pop and push.
EFFECTS = {"const": (0, 1), "get": (0, 1), "new": (0, 1), "dup": (1, 2), "getfield": (1, 1), "putfield": (2, 0), "jump": (0, 0), "exit": (0, 0),
           **dict.fromkeys(["set", "pop", "if", "enter", "print", "return"], (1, 0)),
           **dict.fromkeys(OPERATIONS, (2, 1))}


class Program:
    def __init__(self, file):
        self.classes, self.methods = {}, {}  # by their names
        self.name_at, self.next_name = {}, NAMES_AT
        self.current, self.labels = None, {}
        where = file
        try:
            with open(file, encoding="utf-8") as lines:
                for n, line in enumerate(lines, 1):
                    where, words = f"{file}:{n}", line.split(";")[0].split()
                    if words:
                        self.line(*words)
            self.finish()
            for m in self.methods.values():
                where = m.name
                self.depths(m)
            where = file
            if self.methods["Main.main"].args:
                raise ValueError("Main.main has arguments")
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as e:
            sys.stderr.write(f"tinyvm: {where}: {type(e).__name__}: {e}\n")
            sys.exit(2)

    def keep(self, name):
        """tinyvm stores each name once, one after the other in order of first use, so their addresses are known."""
        if name not in self.name_at:
            self.name_at[name] = self.next_name
            self.next_name += len(name.encode()) + 1 + 15 & ~15
        return name

    def method(self, name):
        return self.methods.setdefault(self.keep(name), Method(name))

    def line(self, op, *rest):
        if op == "class":
            fields = [self.keep(name) for name in rest][1:]
            self.classes.setdefault(rest[0], Class(rest[0], fields))
        elif op == "method":
            self.finish()
            m = self.current = self.method(rest[0])
            m.args, m.locals = int(rest[1]), int(rest[2])
            if not 0 <= m.args <= m.locals <= MAX_LOCALS:
                raise ValueError("method NAME ARGS LOCALS")
        elif op.endswith(":"):
            self.labels[op[:-1]] = len(self.current.code)
        elif op == "null":
            self.current.code.append(Instruction("const", NULL))
        elif op in ("int", "double"):
            self.current.code.append(Instruction("const", box_int(int(rest[0], 0)) if op == "int" else box_double(float(rest[0]))))
        elif op in OPERANDS:
            self.current.code.append(Instruction(op, OPERANDS[op](self, rest[0])))
        elif op in EFFECTS:
            self.current.code.append(Instruction(op))
        else:
            raise ValueError("no such instruction: " + op)

    def local(self, n):
        if int(n) not in range(self.current.locals):
            raise ValueError("no such local")
        return int(n)

    def label(self, name):
        return name  # until the method is known as a whole

    def known_class(self, name):
        return self.classes[self.keep(name)]

    def finish(self):
        """Labels are local to a method."""
        for i in self.current.code if self.current else ():
            if i.op in ("jump", "if") and isinstance(i.a, str):
                i.a = self.labels[i.a]
        self.labels = {}

    @staticmethod
    def depths(m):
        todo = [(0, 0, 0)]
        while todo:
            p, depth, held = todo.pop()
            if p in m.at:
                if m.at[p] != (depth, held):
                    raise ValueError(f"two ways lead to {p} with different stacks")
                continue
            i, m.at[p] = m.code[p], (depth, held)
            pops, pushes = (i.a.args, 1) if i.op == "call" else EFFECTS[i.op]
            held += (i.op == "enter") - (i.op == "exit")
            if depth < pops or held < 0 or i.op == "return" and held:
                raise ValueError(f"at {p} the stack or the monitors do not suffice")
            if i.op in ("jump", "if"):
                todo.append((i.a, depth + pushes - pops, held))
            if i.op not in ("jump", "return"):
                todo.append((p + 1, depth + pushes - pops, held))


# The operand of an instruction as text, and its parsed form.
OPERANDS = {"get": Program.local, "set": Program.local, "jump": Program.label, "if": Program.label, "new": Program.known_class,
            "getfield": Program.keep, "putfield": Program.keep, "call": Program.method}


# Memory and execution.

class Heap:
    """Words by address. This one is the whole memory."""

    fuel_at, stopped_at, why_at = 8, 16, 24  # tinyvm_fuel, tinyvm_stopped, tinyvm_why

    def __init__(self, fuel=0):
        self.words = {self.fuel_at: fuel, self.stopped_at: 0}
        self.class_at = {}  # of the objects that are known
        self.next = NAMES_AT

    def load(self, at):
        return self.words[at]

    def store(self, at, v):
        self.words[at] = v

    def mark(self, ref):
        """The write barrier: a field of the object was stored to."""

    def class_of(self, ref):
        return self.class_at[ref]

    def print(self, text):
        sys.stdout.write(text + "\n")

    def allocate(self, classes):
        """Returns a reference to a new object of each class, with all fields null."""
        refs = []
        for c in classes:
            refs.append(self.next)
            self.next += c.size
            self.add(refs[-1], c)
        return refs

    def add(self, at, c):
        self.class_at[at] = c
        self.words.update((at + offset, 0) for offset in range(0, c.size, WORD))
        self.store(at + LOCK_AT, len(c.fields) << 32)

    def lock(self, ref, by):
        word = self.load(ref + LOCK_AT)  # the count of fields is above the lock
        self.store(ref + LOCK_AT, word & 0xffffffff << 32 | word + by & 0xffffffff)


class Remote(Heap):
    """A process's."""

    def __init__(self, target, program):
        super().__init__()
        self.target, self.program, self.stored = target, program, set()
        addresses = target.symbols(["tinyvm_fuel", "tinyvm_stopped", "tinyvm_why", "tinyvm_cards"])
        self.cards_at, self.cards = addresses.pop(), set()
        if None in addresses:
            raise Unsupported("the process has no tinyvm_fuel, no tinyvm_stopped or no tinyvm_why: it is no tinyvm")
        self.fuel_at, self.stopped_at, self.why_at = addresses
        self.words = {at: int.from_bytes(data, "little") for at, data in zip(addresses, target.read([(at, WORD) for at in addresses]))}
        self.names = {}  # what stands at an address

    def store(self, at, v):
        self.words[at] = v
        self.stored.add(at)

    def name(self, at):
        if at not in self.names:
            self.names[at] = self.target.read_string(at).decode(errors="replace")
        return self.names[at]

    def class_of(self, ref):
        """Returns that of an object, and caches its words."""
        if ref not in self.class_at:
            try:
                name, state = self.target.read_words(ref, 2)
                c = self.program.classes.get(self.name(name))
                if ref % WORD or not c or state >> 32 != len(c.fields):
                    raise Unsupported(f"{ref:#x} is no reference: no object of a class of the program is there")
                words = [name, state] + self.target.read_words(ref + FIELDS_AT, len(c.fields))
            except reframe_vm.RequestError as e:
                raise Unsupported(f"{ref:#x} is no reference: {e}")
            self.words.update((ref + WORD * k, w) for k, w in enumerate(words))
            self.class_at[ref] = c
        return self.class_at[ref]

    def why(self):
        """The program has already stopped."""
        return self.target.read_string(self.why_at).decode(errors="replace")

    def allocate(self, classes):
        for c in set(classes):
            if self.name(self.program.name_at[c.name]) != c.name:
                raise Unsupported(f"the name of {c.name} is not where tinyvm keeps it")
        refs = self.target.allocate_all([c.size for c in classes])
        for ref, c in zip(refs, classes):
            self.add(ref, c)
            self.store(ref, self.program.name_at[c.name])
        return refs

    def print(self, text):
        self.target.output(text + "\n")

    def write_back(self):
        self.target.write_words({at: self.words[at] for at in self.stored})
        if self.cards and self.cards_at:
            self.target.write([(self.cards_at + card, b"\1") for card in sorted(self.cards)])

    def mark(self, ref):
        if HEAP <= ref < HEAP + HEAP_SIZE:  # the process has new objects elsewhere, if at all
            self.cards.add(ref >> 9 & 0xff)


class Frame:
    """If it waits for a call, position is that of the call, and the arguments are no longer on the stack."""

    def __init__(self, method, args=()):
        self.method, self.position, self.stack, self.monitors = method, 0, [], []
        self.locals = list(args) + [NULL] * (method.locals - len(args))
        self.dead = set()  # numbers of locals that were not handed over, and that nothing has set since


class Stop(Exception):
    """The program ends with an error."""


class Stand(Exception):
    """The requested stop was reached."""


class Interpreter:
    def __init__(self, heap, limit=0, tail=0, stands=lambda ran, frames: False):
        self.heap, self.limit, self.steps, self.locked = heap, limit, 0, False
        self.stands = stands  # asked before each instruction, whether it is to go on no further
        self.ran = collections.deque(maxlen=tail)  # methods and positions

    def text(self, v):
        if is_int(v):
            return str(signed(v, 32))
        if v == NULL:
            return "null"
        return "a " + self.heap.class_of(v).name if is_ref(v) else "%.17g" % as_number(v)

    def stop(self, why):
        self.heap.store(self.heap.stopped_at, 1)
        text = why.encode()[:WHY_SIZE - 1].ljust(WHY_SIZE, b"\0")
        for at in range(0, WHY_SIZE, WORD):
            self.heap.store(self.heap.why_at + at, int.from_bytes(text[at:at + WORD], "little"))
        raise Stop(why)

    def error(self, f, what):
        self.stop(f"error: {what} in {f.method.name} @ {f.position}")

    def spend(self):
        fuel = signed(self.heap.load(self.heap.fuel_at))
        if fuel <= 0:
            self.stop("out of fuel")
        self.heap.store(self.heap.fuel_at, fuel - 1)

    def take(self, ref):
        """A monitor."""
        self.heap.class_of(ref)
        self.heap.lock(ref, 1)
        self.locked = True

    def field(self, f, ref, name):
        """Where it is."""
        c = self.heap.class_of(ref) if is_ref(ref) and ref != NULL else None
        if not c or name not in c.fields:
            self.error(f, "no such field")
        return ref + FIELDS_AT + WORD * c.fields.index(name)

    def returned(self, frames, v):
        """Sets the result of the call for which the last frame waits."""
        if self.heap.load(self.heap.stopped_at):
            raise Stop(self.heap.why())
        frames[-1].stack.append(v)
        frames[-1].position += 1

    def run(self, frames, depth):
        """Runs the last frame, then its callers, and returns the result of the first. depth is the number of frames under that. Raises Stop, and Stand."""
        while True:
            f = frames[-1]
            i, stack = f.method.code[f.position], f.stack
            op = i.op
            if self.stands(self.steps, len(frames)):
                raise Stand
            if self.limit and self.steps >= self.limit:
                raise Unsupported(f"it has run {self.steps} instructions, and more are not wanted")
            self.steps += 1
            self.ran.append((f.method, f.position))
            if op == "const":
                stack.append(i.a)
            elif op == "get":
                stack.append(f.locals[i.a])
            elif op == "set":
                f.locals[i.a] = stack.pop()
                f.dead.discard(i.a)
            elif op == "dup":
                stack.append(stack[-1])
            elif op == "pop":
                stack.pop()
            elif op in ("jump", "if"):
                taken = op == "jump" or truth(stack[-1])
                if taken and i.a <= f.position:
                    self.spend()
                if op == "if":
                    stack.pop()
                f.position = i.a if taken else f.position + 1
                continue
            elif op == "new":
                stack.extend(self.heap.allocate([i.a]))
            elif op == "getfield":
                stack[-1] = self.heap.load(self.field(f, stack[-1], i.a))
            elif op == "putfield":
                self.heap.store(self.field(f, stack[-2], i.a), stack[-1])
                self.heap.mark(stack[-2])
                del stack[-2:]
            elif op == "enter":
                if not is_ref(stack[-1]) or stack[-1] == NULL:
                    self.error(f, "no object to hold")
                self.take(stack[-1])
                f.monitors.append(stack.pop())
            elif op == "exit":
                self.heap.class_of(f.monitors[-1])
                self.heap.lock(f.monitors.pop(), -1)
            elif op == "print":
                self.heap.print(self.text(stack.pop()))
            elif op == "call":
                if depth + len(frames) >= MAX_DEPTH:
                    self.error(f, "the stack is full")
                self.spend()
                first = len(stack) - i.a.args
                frames.append(Frame(i.a, stack[first:]))
                del stack[first:]
                continue
            elif op == "return":
                v = stack.pop()
                frames.pop()
                if not frames:
                    return v
                self.returned(frames, v)
                continue
            else:
                v = arithmetic(op, stack[-2], stack[-1])
                if v is None:
                    self.error(f, "no numbers")
                stack[-2:] = [v]
            f.position += 1

    def operand(self, i):
        return "" if i.a is None else " " + (self.text(i.a) if i.op == "const" else str(getattr(i.a, "name", i.a)))

    def tail(self):
        return [f"{m.name} @ {p} {m.code[p].op.upper()}{self.operand(m.code[p])}" for m, p in self.ran]


# Frames of reframe's requests.

class Handed:
    """Returns the frames of a request in the interpreter's form: outermost first."""

    def __init__(self, request, program, interpreter):
        self.program, self.interpreter = program, interpreter
        heap, objects = interpreter.heap, request.get("objects", [])
        self.where = "an object: "
        classes = [self.known(program.classes, o, "class") for o in objects]
        self.refs = dict(zip([o["id"] for o in objects], heap.allocate(classes)))  # all, so that they may lead to each other
        for o, c in zip(objects, classes):
            self.where = f"object {o['id']}, a {c.name}: "
            for f in o["fields"]:
                if (f["at"] - FIELDS_AT) % WORD or not FIELDS_AT <= f["at"] < c.size:
                    raise Malformed(f"{self.where}no field is at {f['at']}")
                heap.store(self.refs[o["id"]] + f["at"], self.value(f))
        self.frames, callee = [], None
        for n, f in reversed(list(enumerate(request["frames"]))):
            self.where = f"frame {n}, {f.get('method', 'of no method')} @ {f.get('position', '?')}: "
            callee = self.add(f, n == 0, callee)
        extra = request["frames"][-1].get("extra", {}).get("extra 2")
        self.depth = signed(number(extra["bits"])) if extra else 0
        if request["frames"][0]["resume"] == "in-call":
            if "returned" not in request:
                raise Unsupported(f"{self.where}what the call has returned is missing")
            interpreter.returned(self.frames, number(request["returned"]["bits"]))

    def known(self, names, of, what):
        if of.get(what) not in names:
            raise Malformed(f"{self.where}the program has no {what} {of.get(what)}")
        return names[of[what]]

    def value(self, v):
        if v.get("dead"):
            return NULL
        if "object" in v:
            if v["object"] not in self.refs:
                raise Malformed(f"{self.where}there is no object {v['object']}")
            return self.refs[v["object"]]
        kind = v.get("type")
        bits = 0 if kind == "null" else number(v["bits"])
        if kind == "i32":
            return box_int(bits)
        if kind in ("f64", "double"):
            return box_double(double(bits))
        if kind in ("ref", "null") and is_ref(bits):
            return bits
        raise Malformed(f"{self.where}{v.get('value')} of type {kind} is no value of tinyvm")

    def add(self, f, innermost, callee):
        """Returns another frame on top of the others. callee is the method that it calls."""
        m, p, how = self.known(self.program.methods, f, "method"), f.get("position"), f["resume"]

        def refuse(why):
            raise Malformed(self.where + why)

        if p is None or not 0 <= p < len(m.code) or p not in m.at:
            refuse("no such position is reached")
        if callee and m is not callee:
            refuse(f"the frame that waits for it has called {callee.name}")
        op, waits = m.code[p].op, how == "in-call"
        if waits and op != "call" or not waits and not innermost:
            refuse("it does not wait for a call")
        if how == "after":
            if op in ("jump", "if", "return"):
                raise Unsupported(f"{self.where}what is after {op.upper()} is not at one place")
            p += 1
        elif how not in ("in-call", "reexecute"):
            raise Unsupported(f"{self.where}nothing of tinyvm is resumed by {how}")
        frame = Frame(m)
        frame.position = p
        frame.dead.update(range(m.locals))
        for v in f["locals"]:
            if not 0 <= v["index"] < m.locals:
                refuse(f"it has no local {v['index']}")
            frame.locals[v["index"]] = self.value(v)
            if not v.get("dead"):
                frame.dead.discard(v["index"])
        depth = m.at[p][0] - (m.code[p].a.args if waits else 0)
        if sorted(v["index"] for v in f["stack"]) != list(range(depth)):
            refuse(f"{len(f['stack'])} values are on its stack, and the program has {depth} there")
        frame.stack = [self.value(v) for v in sorted(f["stack"], key=lambda v: v["index"])]
        monitors = f.get("monitors", [])
        if len(monitors) != m.at[p][1]:
            refuse(f"it holds {len(monitors)} monitors, and the program has {m.at[p][1]} there")
        for monitor in monitors:
            ref = self.value(monitor["owner"])
            if not is_ref(ref) or ref == NULL:
                refuse("it holds the monitor of no object")
            if monitor.get("eliminated"):
                self.interpreter.take(ref)
            frame.monitors.append(ref)
        self.frames.append(frame)
        return m.code[p].a if waits else None


def handed_back(frames, depth, interpreter):
    """Returns the frames in the form of the protocol, innermost first."""
    def value(v, **more):
        if is_int(v):
            return reframe_vm.value(v & 0xffffffff, "i32", interpreter.text(v), **more)
        if is_ref(v):
            return reframe_vm.value(v, "ref" if v else "null", hex(v) if v else "null", **more)
        return reframe_vm.value(v - DOUBLE_OFFSET, "f64", interpreter.text(v), **more)

    def one(n, f):
        i = f.method.code[f.position]
        return {"method": f.method.name, "position": f.position, "resume": "in-call" if n < len(frames) - 1 else "reexecute",
                "text": i.op + interpreter.operand(i),
                "locals": [{"index": k, "dead": True} if k in f.dead else value(v, index=k) for k, v in enumerate(f.locals)],
                "stack": [value(v, index=k) for k, v in enumerate(f.stack)],
                "monitors": [{"owner": value(v)} for v in f.monitors]}

    back = [one(n, f) for n, f in enumerate(frames)][::-1]
    back[-1]["extra"] = {"extra 2": reframe_vm.value(depth, "i64", str(depth))}
    return back


class Server(reframe_vm.VM):
    name = "tinyvm.py"
    step = True

    def __init__(self, program):
        self.program = program

    def resume(self, request, target):
        interpreter = None
        try:
            heap = Remote(target, self.program)
            interpreter = Interpreter(heap, request.get("steps", 0), request.get("tail", 0), lambda ran, frames: reframe_vm.stops(request, ran, frames))
            try:
                handed = Handed(request, self.program, interpreter)
                v = interpreter.run(handed.frames, handed.depth)
                answer = reframe_vm.returned(v, text=interpreter.text(v))
            except Stop as e:  # compiled code returns 0 then
                answer = reframe_vm.threw(str(e), returned=reframe_vm.native(0))
            except Stand:
                answer = reframe_vm.stopped(handed_back(handed.frames, handed.depth, interpreter))
            heap.write_back()
        except (Unsupported, reframe_vm.RequestError) as e:
            answer = {"unsupported": str(e)}
        except Malformed as e:
            answer = {"malformed": str(e)}
        if interpreter:
            answer.update(steps=interpreter.steps, tail=interpreter.tail())
            if not {"unsupported", "malformed"} & answer.keys() and not interpreter.locked:
                answer["locked"] = False
        return answer


def main():
    flags = argparse.ArgumentParser(description="Runs programs of tinyvm, or goes on in their frames.")
    flags.add_argument("--serve", action="store_true", help="speak doc/user/protocol.md")
    flags.add_argument("--fuel", type=int, default=100000, metavar="N", help="how many backward jumps and calls the program may make (100000)")
    flags.add_argument("program", metavar="PROGRAM.tvm")
    args = flags.parse_args()
    program = Program(args.program)
    if args.serve:
        return Server(program).serve()
    interpreter = Interpreter(Heap(args.fuel))
    try:
        v = interpreter.run([Frame(program.methods["Main.main"])], 0)
    except Stop as e:
        print(f"stopped: {e}")
        return 3
    print(interpreter.text(v))


if __name__ == "__main__":
    sys.exit(main())
