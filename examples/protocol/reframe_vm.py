"""An interpreter that `reframe resume --with` can hand frames to: copy this file beside yours. Python 3.9 or later, nothing else.

    import reframe_vm

    class Mine(reframe_vm.VM):
        name = "mine"

        def resume(self, request, target):
            frame = request["frames"][0]                   # dictionaries, as doc/user/protocol.md has them
            counter = target.read_word(0x7f0010)
            target.write_word(0x7f0010, counter + 1)
            target.output("42\\n")                          # what the program would have printed
            return reframe_vm.returned(0xffff000000000007, text="7")

    Mine().serve()

resume may be called several times. Each time it is about another moment of the process: keep nothing of an earlier one. What it raises is told to
reframe; Unsupported is for what your interpreter cannot do, Malformed for frames that there cannot be, all else means that it is broken. Threads must not use the target at the same time.

Each request is a round trip. read and symbols take many ranges and names at once, and ask_all sends requests of all sorts in one go.
"""
import json
import os
import sys
import traceback

PROTOCOL = "reframe.vm/1"
MAX_READ = 4 << 20     # bytes of one memory.read, which reframe refuses beyond that
MAX_RANGES = 1 << 15
MAX_AHEAD = 1 << 20    # characters of requests without having read an answer: with both pipes full, each side would wait for the other


class Unsupported(Exception):
    """Raised by resume: it cannot go on, and this is why."""


class Malformed(Exception):
    """Raised by resume: no interpreter can ever have such frames, and this is why."""


class RequestError(Exception):
    """Reframe has refused a request."""

    def __init__(self, message, code=-32000):
        super().__init__(message)
        self.code = code


class Unreadable(RequestError):
    """A range that cannot be read as a whole."""


class Closed(Exception):
    """Reframe has gone."""


def number(text):
    """The number in "0x2a"; values of frames have theirs in "bits"."""
    return int(text, 16)


def signed(n, bits=64):
    """A number's lower bits, as a signed one."""
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> bits - 1 else n


def word(n):
    """A number of up to 64 bits, which may be negative, as the protocol writes it."""
    return hex(n & 0xffffffffffffffff)


def returned(bits=None, type="i64", text=None, **more):
    """The answer that the outermost frame has returned: what compiled code would have in its register, or nothing. more: steps, tail, locked."""
    return dict(more, returned=None if bits is None else native(bits, type, text))


def threw(text, **more):
    """The answer that an exception has left the outermost frame; returned=native(...) is what compiled code returns then."""
    return dict(more, threw={"text": text})


def stopped(frames, objects=(), **more):
    """The answer of who offers step that stops says it is to stop: frames are as those of the request, innermost first. more: steps, which is a must, and tail, locked."""
    return dict(more, stopped={"frames": list(frames), **({"objects": list(objects)} if objects else {})})


def stops(request, ran, frames):
    """Asked before each instruction: is it to stop here, where so many were run and there are so many frames?"""
    stop = request.get("stop")
    return stop is not None and ran >= stop["after"] and frames <= stop.get("frames", frames)


def value(bits, type, text=None, **more):
    """A value of a frame: bits are its type's alone. more: index, of a local or a place on the stack."""
    return dict(more, type=type, bits=word(bits), **({} if text is None else {"value": text}))


def native(bits, type="i64", text=None):
    """A value as compiled code returns it."""
    value = {"type": type, "bits": word(bits)}
    if text is not None:
        value["text"] = text
    return value


class Target:
    """The moment of the process that a resume is about."""

    def __init__(self, connection, hello):
        self.arch = hello.get("arch", "x86-64")
        self.order = hello.get("order", "little")
        self.pointer = hello.get("pointer", 8)     # bytes
        self.core = hello.get("target") == "core"  # not a process
        self._connection = connection

    def ask_all(self, requests):
        """Sends pairs of a method and its parameters, and only then waits. The results in the same order, with a RequestError for what is refused."""
        return self._connection.ask_all(requests)

    def ask(self, method, params):
        """One request. Raises RequestError."""
        return self._good(self.ask_all([(method, params)]))[0]

    @staticmethod
    def _good(results):
        for result in results:
            if isinstance(result, RequestError):
                raise result
        return results

    # Memory: the process's as it was, with what was written since.

    def read(self, ranges):
        """The bytes of each range (address, size). Raises Unreadable where one cannot be read."""
        return self._good(self.try_read(ranges))

    def try_read(self, ranges):
        """As read, but with Unreadable in place of the bytes that cannot be read."""
        requests, size = [], MAX_READ + 1
        for at, n in ranges:
            size += n
            if size > MAX_READ or len(requests[-1]) == MAX_RANGES:
                requests.append([])
                size = n
            requests[-1].append({"at": word(at), "size": n})
        parts = self._good(self.ask_all([("memory.read", {"ranges": r}) for r in requests]))
        return [bytes.fromhex(p["data"]) if "data" in p else Unreadable(p["error"]) for part in parts for p in part]

    def read_bytes(self, at, size):
        return self.read([(at, size)])[0]

    def read_words(self, at, n, size=None):
        """So many unsigned words, each as large as a pointer or of that size."""
        size = size or self.pointer
        data = self.read_bytes(at, n * size)
        return [int.from_bytes(data[k:k + size], self.order) for k in range(0, len(data), size)]

    def read_word(self, at, size=None):
        return self.read_words(at, 1, size)[0]

    def read_string(self, at, limit=4096):
        """The bytes before the first 0. It never reads beyond a page in which it found none."""
        text = b""
        while b"\0" not in text and len(text) < limit:
            here = at + len(text)
            text += self.read_bytes(here, 64 - here % 64)
        return text.split(b"\0")[0][:limit]

    def write(self, ranges):
        """Writes pairs (address, bytes), in one request. Where one cannot be written, none is."""
        self.ask("memory.write", {"ranges": [{"at": word(at), "data": bytes(data).hex()} for at, data in ranges]})

    def write_words(self, words, size=None):
        """Writes a dictionary of words by their addresses, in one request: neighbours as one range."""
        size, ranges = size or self.pointer, []
        for at in sorted(words):
            data = (words[at] & (1 << 8 * size) - 1).to_bytes(size, self.order)
            if ranges and ranges[-1][0] + len(ranges[-1][1]) == at:
                ranges[-1][1].extend(data)
            else:
                ranges.append((at, bytearray(data)))
        if ranges:
            self.write(ranges)

    def write_word(self, at, value, size=None):
        self.write_words({at: value}, size)

    def allocate(self, size, align=16):
        """The address of memory that the process does not use, all zeros."""
        return self.allocate_all([size], align)[0]

    def allocate_all(self, sizes, align=16):
        requests = [("memory.allocate", {"size": size, "align": align}) for size in sizes]
        return [number(result["at"]) for result in self._good(self.ask_all(requests))]

    def symbols(self, names):
        """The address of each symbol, None where there is none."""
        return [found and number(found["at"]) for found in self.ask("symbol", {"names": list(names)})]

    def symbol(self, name):
        return self.symbols([name])[0]

    def output(self, text):
        """What the program would have printed."""
        self._connection.send({"method": "output", "params": {"text": text}})


class VM:
    """To be derived from."""

    name = ""     # which reframe shows
    step = False  # it stops where stops says so

    def initialize(self, params):
        """Called once, before the first resume."""

    def resume(self, request, target):
        """Goes on in request["frames"] until the outermost has returned, and answers what returned, threw, stopped or unsupported are in doc/user/protocol.md."""
        raise NotImplementedError

    def serve(self):
        """Does what reframe asks until that ends. Standard input and output are the protocol's from then on: what else is printed goes to stderr."""
        lines, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # what is printed by programs that are started, and by libraries
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout = sys.stderr
        try:
            _Connection(self, lines, out).run()
        except Closed:
            pass
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # where Python writes at its end what it could not


class _Connection:
    def __init__(self, vm, lines, out):
        self.vm, self.lines, self.out = vm, lines, out
        self.hello, self.last = {}, 0  # id of the last request of ours

    def run(self):
        while True:
            message = self.receive()
            if "method" in message:
                self.do(message)  # else it answers what nobody waits for any more

    def receive(self):
        """The next message. What is none is answered by an error, and left out."""
        while True:
            line = self.lines.readline()
            if not line.endswith(b"\n"):
                raise Closed
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self.fail(None, -32700, "this is no JSON")
                continue
            if isinstance(message, dict) and (isinstance(message.get("method"), str) or "result" in message or "error" in message):
                return message
            self.fail(None, -32600, "this is no request")

    def send(self, message, flush=True):
        text = json.dumps(dict(jsonrpc="2.0", **message), separators=(",", ":"), allow_nan=False)
        self.out.write(text.encode() + b"\n")
        if flush:
            self.out.flush()
        return len(text)

    def fail(self, id, code, message):
        self.send({"id": id, "error": {"code": code, "message": message}})

    def do(self, message):
        id, method, params = message.get("id"), message["method"], message.get("params") or {}
        known = {"initialize": self.initialize, "resume": self.resume}.get(method)
        if "id" not in message:
            return  # a notification, and none is known
        if not known:
            return self.fail(id, -32601, f"there is no method {method}")
        try:
            result = known(params)
        except (Closed, BrokenPipeError):
            raise
        except Exception as e:
            traceback.print_exc()
            return self.fail(id, -32000, f"{type(e).__name__}: {e}")
        self.send({"id": id, "result": result})

    def initialize(self, params):
        self.hello = params
        self.vm.initialize(params)
        return {"protocol": PROTOCOL, "name": self.vm.name, **({"step": True} if self.vm.step else {})}

    def resume(self, params):
        try:
            answer = self.vm.resume(params, Target(self, self.hello))
        except Unsupported as e:
            return {"unsupported": str(e) or "it does not say why"}
        except Malformed as e:
            return {"malformed": str(e) or "it does not say why"}
        json.dumps(answer, allow_nan=False)  # what is no JSON raises here, and is told as an error of the interpreter
        if not isinstance(answer, dict):
            raise TypeError(f"resume answers {answer!r}, and a dictionary is wanted")
        return answer

    def ask_all(self, requests):
        results, ahead, first = [], 0, self.last + 1
        for method, params in requests:
            self.last += 1
            ahead += self.send({"id": self.last, "method": method, "params": params}, flush=False)
            if ahead > MAX_AHEAD:
                self.collect(results, first)
                ahead = 0
        self.collect(results, first)
        return results

    def collect(self, results, first):
        self.out.flush()
        while first + len(results) <= self.last:
            message = self.receive()
            if "method" in message:
                if "id" in message:
                    self.fail(message["id"], -32600, "one thing after the other")
            elif message.get("id") == first + len(results):
                error = message.get("error")
                results.append(RequestError(error.get("message", ""), error.get("code", 0)) if error else message.get("result"))
