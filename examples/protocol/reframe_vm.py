"""The protocol for an interpreter that `reframe resume --with` passes frames to. Copy this file into your project. It needs only Python 3.9 or later.

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

resume may be called several times, each time for another state of the process: keep nothing of an earlier one. Its exceptions are reported to
reframe: Unsupported means that your interpreter cannot run the frames, Malformed that no interpreter can have them, and any other that the interpreter
is broken. Threads must not use the target at the same time.

Each request is a round trip. read and symbols take many ranges and names at once, and ask_all sends several requests together.
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
    """Raised by resume if the interpreter cannot continue; the text is the reason."""


class Malformed(Exception):
    """Raised by resume if no interpreter can have such frames; the text is the reason."""


class RequestError(Exception):
    """reframe refused a request."""

    def __init__(self, message, code=-32000):
        super().__init__(message)
        self.code = code


class Unreadable(RequestError):
    """A range that cannot be read completely."""


class Closed(Exception):
    """reframe has ended."""


def number(text):
    """Parses a number such as "0x2a", the form of "bits" in values of frames."""
    return int(text, 16)


def signed(n, bits=64):
    """Returns the lower bits of a number as a signed number."""
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> bits - 1 else n


def word(n):
    """Formats a number of up to 64 bits, which may be negative, for the protocol."""
    return hex(n & 0xffffffffffffffff)


def returned(bits=None, type="i64", text=None, **more):
    """The answer if the outermost frame has returned: the value in the register form of compiled code, or none. more: steps, tail, locked."""
    return dict(more, returned=None if bits is None else native(bits, type, text))


def threw(text, **more):
    """The answer if an exception has left the outermost frame; returned=native(...) is the result of compiled code in that case."""
    return dict(more, threw={"text": text})


def stopped(frames, objects=(), **more):
    """The answer if stops() has requested a stop, for interpreters that offer step. frames have the form of the request, innermost first. more: steps (required), tail, locked."""
    return dict(more, stopped={"frames": list(frames), **({"objects": list(objects)} if objects else {})})


def stops(request, ran, frames):
    """Call this before each instruction. Returns whether to stop here, given the number of instructions run and of frames."""
    stop = request.get("stop")
    return stop is not None and ran >= stop["after"] and frames <= stop.get("frames", frames)


def value(bits, type, text=None, **more):
    """A value of a frame; bits has only the bits of the type. more: index, of a local or a stack slot."""
    return dict(more, type=type, bits=word(bits), **({} if text is None else {"value": text}))


def native(bits, type="i64", text=None):
    """A value in the form in which compiled code returns it."""
    value = {"type": type, "bits": word(bits)}
    if text is not None:
        value["text"] = text
    return value


class Target:
    """The state of the process that a resume starts from."""

    def __init__(self, connection, hello):
        self.arch = hello.get("arch", "x86-64")
        self.order = hello.get("order", "little")
        self.pointer = hello.get("pointer", 8)     # bytes
        self.core = hello.get("target") == "core"  # not a process
        self._connection = connection

    def ask_all(self, requests):
        """Sends pairs of a method and its parameters, and then waits. Returns the results in the same order, with a RequestError for each refused request."""
        return self._connection.ask_all(requests)

    def ask(self, method, params):
        """Sends one request. Raises RequestError."""
        return self._good(self.ask_all([(method, params)]))[0]

    @staticmethod
    def _good(results):
        for result in results:
            if isinstance(result, RequestError):
                raise result
        return results

    # Memory: that of the process at the exit, with later writes.

    def read(self, ranges):
        """Returns the bytes of each range (address, size). Raises Unreadable if one cannot be read."""
        return self._good(self.try_read(ranges))

    def try_read(self, ranges):
        """Like read, but returns Unreadable in place of unreadable bytes."""
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
        """Reads n unsigned words, each of the size of a pointer, or of size bytes."""
        size = size or self.pointer
        data = self.read_bytes(at, n * size)
        return [int.from_bytes(data[k:k + size], self.order) for k in range(0, len(data), size)]

    def read_word(self, at, size=None):
        return self.read_words(at, 1, size)[0]

    def read_string(self, at, limit=4096):
        """Returns the bytes before the first 0. Reads page by page, up to the one with the 0."""
        text = b""
        while b"\0" not in text and len(text) < limit:
            here = at + len(text)
            text += self.read_bytes(here, 64 - here % 64)
        return text.split(b"\0")[0][:limit]

    def write(self, ranges):
        """Writes pairs (address, bytes) in one request. If one cannot be written, writes none."""
        self.ask("memory.write", {"ranges": [{"at": word(at), "data": bytes(data).hex()} for at, data in ranges]})

    def write_words(self, words, size=None):
        """Writes a dictionary of words by address in one request; neighbours form one range."""
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
        """Returns the address of memory that the process does not use, filled with zeros."""
        return self.allocate_all([size], align)[0]

    def allocate_all(self, sizes, align=16):
        requests = [("memory.allocate", {"size": size, "align": align}) for size in sizes]
        return [number(result["at"]) for result in self._good(self.ask_all(requests))]

    def symbols(self, names):
        """Returns the address of each symbol, or None."""
        return [found and number(found["at"]) for found in self.ask("symbol", {"names": list(names)})]

    def symbol(self, name):
        return self.symbols([name])[0]

    def output(self, text):
        """Sends output of the program."""
        self._connection.send({"method": "output", "params": {"text": text}})


class VM:
    """The base class of an interpreter."""

    name = ""     # shown by reframe
    step = False  # it stops where stops says so

    def initialize(self, params):
        """Called once, before the first resume."""

    def resume(self, request, target):
        """Runs request["frames"] until the outermost has returned. Returns an answer: returned, threw, stopped or unsupported of doc/user/protocol.md."""
        raise NotImplementedError

    def serve(self):
        """Serves requests of reframe until it ends. From then on standard input and output belong to the protocol; other output goes to stderr."""
        lines, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # output of child processes and libraries
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
        """Returns the next message. Invalid messages are answered with an error and skipped."""
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
