import os
import re
import select
import shutil
import signal
import socket
import stat
import struct
import tempfile
import time


class Lost(Exception):
    """Lost is raised when the other side has closed its connection."""


class Stub:
    """Stub is a read-only stub of gdb's remote serial protocol. It serves one client at a time from the memory and the registers of a debugger.

    The debugger is an object with a name, the exceptions that its methods raise (errors), and these methods:

        pid()            the number of the process
        threads()        a list of (thread id, name); the first one is selected
        description()    a target description in XML (gdb's manual, "Target Descriptions")
        registers(tid)   a list of (number, offset, size, bytes or None), in the order of the description
        memory(at, n)    the bytes from an address on, up to the first unreadable one
        auxv()           the auxiliary vector, or None
        executable()     the path of the program, or ""
        libraries()      the list of libraries in XML (qXfer:libraries-svr4), or None
        open(path)       a regular file of the process's machine, as a binary file object; it raises OSError
        native           whether the process is on this machine and alive
    """

    # The most bytes in one packet. Memory in binary may need two bytes for one.
    SIZE = 1 << 18

    def __init__(self, debugger):
        self.debugger = debugger
        self.files = {}
        self.objects = {}
        self.chosen = 0
        self.multiprocess = False
        self.acknowledged = True
        self.input = b""
        self.client = None

    def close(self):
        for file in self.files.values():
            file.close()
        self.files = {}
        if self.client is not None:
            self.client.close()
            self.client = None

    # Packets.

    def accept(self, client):
        self.close()
        client.setblocking(True)
        # A client that stops reading must not stop the debugger.
        client.settimeout(30)
        self.client, self.input, self.acknowledged = client, b"", True
        self.chosen, self.multiprocess, self.objects = 0, False, {}

    def receive(self):
        """receive reads what the client has sent, and answers each complete packet."""
        data = self.client.recv(1 << 16)
        if not data:
            raise Lost()
        self.input += data
        while self.input:
            if self.input[:1] != b"$":
                self.input = self.input[1:]  # an acknowledgement, or an interrupt of a process that does not run
                continue
            end = self.input.find(b"#")
            if end < 0 or len(self.input) < end + 3:
                if len(self.input) > self.SIZE:
                    raise Lost()
                return
            body, checksum = self.input[1:end], self.input[end + 1 : end + 3]
            self.input = self.input[end + 3 :]
            if self.acknowledged:
                good = checksum.lower() == b"%02x" % (sum(body) & 255)
                self.client.sendall(b"+" if good else b"-")
                if not good:
                    continue
            # The client no longer acknowledges after the reply to this packet.
            last = body == b"QStartNoAckMode"
            reply = self.answer(body)
            self.client.sendall(b"$" + reply + b"#%02x" % (sum(reply) & 255))
            self.acknowledged = self.acknowledged and not last

    @staticmethod
    def escaped(data):
        """escaped returns binary data in the form in which a packet contains it."""
        if not re.search(rb"[#$*}]", data):
            return data
        return re.sub(rb"[#$*}]", lambda m: b"}" + bytes([m.group()[0] ^ 0x20]), data)

    def answer(self, packet):
        """answer returns the reply to a packet, which is empty if the packet is not supported. It fails with E01."""
        for prefix, method in self.METHODS:
            if packet.startswith(prefix):
                try:
                    return method(self, packet[len(prefix) :].decode("latin-1"))
                except (ValueError, LookupError, OverflowError) + self.debugger.errors:
                    return b"E01"
        return b""

    def supported(self, rest):
        self.multiprocess = "multiprocess+" in rest
        offers = ["PacketSize=%x" % self.SIZE, "QStartNoAckMode+", "multiprocess+", "binary-upload+"]
        offers.append("reframe-inside=" + self.debugger.name)  # gdb and lldb ignore features that they do not know
        offers += ["qXfer:features:read+", "qXfer:threads:read+", "qXfer:exec-file:read+"]
        if self.debugger.auxv() is not None:
            offers.append("qXfer:auxv:read+")
        if self.debugger.libraries() is not None:
            offers.append("qXfer:libraries-svr4:read+")
        return ";".join(offers).encode()

    def name_of(self, tid):
        return ("p%x.%x" % (self.debugger.pid(), tid)) if self.multiprocess else "%x" % tid

    def current(self):
        return self.chosen or self.debugger.threads()[0][0]

    def stopped(self, _):
        return b"T05thread:%s;" % self.name_of(self.current()).encode()

    def choose(self, rest):
        tid = int(rest.split(".")[-1], 16)  # -1 means all threads, 0 any
        if tid > 0 and tid not in [t for t, _ in self.debugger.threads()]:
            raise ValueError(rest)
        self.chosen = max(tid, 0)
        return b"OK"

    def alive(self, rest):
        return b"OK" if int(rest.split(".")[-1], 16) in [t for t, _ in self.debugger.threads()] else b"E01"

    def thread_ids(self, _):
        return b"m" + ",".join(self.name_of(t) for t, _ in self.debugger.threads()).encode()

    def all_registers(self, _):
        data = bytearray()
        for _, offset, size, value in self.debugger.registers(self.current()):
            data += b"xx" * (offset - len(data) // 2)
            data += value.hex().encode() if value is not None else b"xx" * size
        return bytes(data)

    def register(self, rest):
        for number, _, size, value in self.debugger.registers(self.current()):
            if number == int(rest, 16):
                return value.hex().encode() if value is not None else b"xx" * size
        raise ValueError(rest)

    def read(self, rest):
        address, size = (int(n, 16) for n in rest.split(","))
        return self.debugger.memory(address, min(size, self.SIZE // 2 - 8))

    def memory(self, rest):
        data = self.read(rest)
        return data.hex().encode() if data else b"E01"

    def binary_memory(self, rest):
        data = self.read(rest)
        return b"b" + self.escaped(data) if data else b"E01"

    def threads_xml(self, _):
        lines = ["<?xml version=\"1.0\"?>", "<threads>"]
        for tid, name in self.debugger.threads():
            lines.append("<thread id=\"%s\" name=\"%s\"/>" % (self.name_of(tid), quoted(name)))
        return "\n".join(lines + ["</threads>"]).encode("utf-8", "surrogateescape")

    def transfer(self, rest):
        """transfer answers qXfer, which reads a part of an object."""
        name, action, annex, span = rest.split(":")
        offset, size = (int(n, 16) for n in span.split(","))
        if action != "read" or name not in self.OBJECTS or (name == "features" and annex != "target.xml"):
            return b"E00"
        # The object stays the same from its first part to its last.
        if offset == 0 or name not in self.objects:
            self.objects[name] = self.OBJECTS[name](self, annex)
        if self.objects[name] is None:
            return b"E01"
        part = self.objects[name][offset : offset + min(size, self.SIZE // 2 - 8)]
        more = offset + len(part) < len(self.objects[name])
        return (b"m" if more else b"l") + self.escaped(part)

    OBJECTS = {
        "features": lambda self, _: self.debugger.description().encode(),
        "threads": threads_xml,
        "auxv": lambda self, _: self.debugger.auxv(),
        "exec-file": lambda self, _: os.fsencode(self.debugger.executable()) or None,
        "libraries-svr4": lambda self, _: (self.debugger.libraries() or "").encode("utf-8", "surrogateescape") or None,
    }

    # Files (gdb's manual, "Host I/O Packets").

    MOST_FILES = 64

    def file(self, rest):
        verb, _, rest = rest.partition(":")
        try:
            if verb == "setfs":
                return b"F0" if self.shared(int(rest, 16)) else b"F-1,1"  # EPERM
            if verb == "open":
                path, flags, _ = rest.split(",")
                if int(flags, 16) & 3 or len(self.files) >= self.MOST_FILES:
                    return b"F-1,1e"  # EROFS
                fd = next(n for n in range(3, 1 << 16) if n not in self.files)
                self.files[fd] = self.debugger.open(os.fsdecode(bytes.fromhex(path)))
                return b"F%x" % fd
            if verb == "close":
                self.files.pop(int(rest, 16)).close()
                return b"F0"
            if verb == "pread":
                fd, size, offset = (int(n, 16) for n in rest.split(","))
                file = self.files[fd]
                file.seek(offset)
                data = file.read(min(size, self.SIZE // 2 - 32))
                return b"F%x;" % len(data) + self.escaped(data)
            if verb == "fstat":
                return self.status(self.files[int(rest, 16)])
        except KeyError:
            return b"F-1,9"  # EBADF
        except OSError as error:
            known = (1, 2, 13, 20, 21)  # EPERM, ENOENT, EACCES, ENOTDIR, EISDIR have the same numbers in the protocol
            return b"F-1,%x" % (error.errno if error.errno in known else 9999)
        return b""

    def shared(self, pid):
        """shared reports whether a process, or the stub itself (0), has the files that open opens: other root directories are not supported."""
        if pid == 0 or not self.debugger.native:
            return pid in (0, self.debugger.pid())
        same = lambda name: os.path.samestat(os.stat("/proc/%d/%s" % (pid, name)), os.stat("/proc/self/%s" % name))
        return pid == self.debugger.pid() and same("root") and same("ns/mnt")

    def status(self, file):
        try:
            s = os.fstat(file.fileno())
            fields = (s.st_dev, s.st_ino, s.st_mode, s.st_nlink, s.st_uid, s.st_gid, 0, s.st_size, 4096, -(-s.st_size // 512))
            times = (s.st_atime, s.st_mtime, s.st_ctime)
        except OSError:  # a file in memory
            size = len(file.getbuffer())
            fields, times = (0, 0, 0o100444, 1, 0, 0, 0, size, 4096, -(-size // 512)), (0, 0, 0)
        low = lambda n: n & 0xFFFFFFFF
        data = struct.pack(">7I3Q", *[low(n) for n in fields[:7]], *fields[7:]) + struct.pack(">3I", *[low(int(t)) for t in times])
        return b"F%x;" % len(data) + self.escaped(data)

    METHODS = [
        (b"qSupported", supported),
        (b"QStartNoAckMode", lambda self, _: b"OK"),
        (b"?", stopped),
        (b"Hg", choose),
        (b"Hc", lambda self, _: b"OK"),
        (b"T", alive),
        (b"qCRC:", lambda self, _: b""),
        (b"qC", lambda self, _: b"QC" + self.name_of(self.current()).encode()),
        (b"qAttached", lambda self, _: b"1"),
        (b"qfThreadInfo", thread_ids),
        (b"qsThreadInfo", lambda self, _: b"l"),
        (b"qXfer:", transfer),
        (b"g", all_registers),
        (b"p", register),
        (b"m", memory),
        (b"x", binary_memory),
        (b"vFile:", file),
        (b"D", lambda self, _: b"OK"),
    ]


def quoted(text):
    """quoted returns text as a value of an attribute in XML."""
    text = re.sub(r"[\x00-\x1f\x7f]", "?", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\"", "&quot;")


def opened(path):
    """opened opens a regular file. A core can name a pipe, which blocks, or a device, which acts when it is opened."""
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, path)
        if not stat.S_ISREG(mode):
            raise PermissionError(13, path)
        return open("/proc/self/fd/%d" % handle, "rb", buffering=0)
    finally:
        os.close(handle)


def served(debugger, command, write=None, fail=None):
    """served runs a command that reads the process of a debugger, and returns its exit status.

    The address of a stub is appended to the command. write and fail get the parts of the command's output. An exception, such as
    KeyboardInterrupt, ends the command.
    """
    directory = tempfile.mkdtemp(prefix="reframe-")  # its mode is 0700
    if len(directory) > 80:  # the path of a socket is at most 107 bytes long
        os.rmdir(directory)
        directory = tempfile.mkdtemp(prefix="reframe-", dir="/tmp")
    stub, listener, child = Stub(debugger), socket.socket(socket.AF_UNIX), Child()
    try:
        path = os.path.join(directory, "stub")
        listener.bind(path)
        listener.listen(1)
        child.start(command + ["--remote", "unix:" + path])
        outputs = {child.outputs[0]: Named(write, path, debugger.name), child.outputs[1]: Named(fail, path, debugger.name)}
        attend(stub, listener, outputs, child)
        for output in outputs.values():
            output.end()
        return child.wait()
    finally:
        child.end()
        stub.close()
        listener.close()
        shutil.rmtree(directory, ignore_errors=True)


class Child:
    """Child is a command that runs. An interrupt at any moment leaves none behind, which subprocess.Popen does not promise while it starts one."""

    def __init__(self):
        self.pid, self.outputs, self.status = None, [], None

    def start(self, command):
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        writers = []
        try:
            actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
            for fd in (1, 2):
                reader, writer = os.pipe()  # both are closed in the command
                self.outputs.append(reader)
                writers.append(writer)
                actions.append((os.POSIX_SPAWN_DUP2, writer, fd))
            self.pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsigmask=mask, setsigdef=[signal.SIGPIPE])
        finally:
            for writer in writers:
                os.close(writer)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def ended(self, options=os.WNOHANG):
        """ended reports whether the command has ended. With options 0 it waits for that."""
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # the debugger has waited for it
                pid, status = self.pid, 0
            if pid:
                self.status = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        return self.status is not None

    def wait(self):
        self.ended(0)
        return self.status

    def end(self):
        """end ends the command if it still runs. It lets the command remove its files first."""
        if self.pid is not None and not self.ended():
            os.kill(self.pid, signal.SIGINT)
            limit = time.monotonic() + 1
            while not self.ended() and time.monotonic() < limit:
                time.sleep(0.01)
            if not self.ended():
                os.kill(self.pid, signal.SIGKILL)
                self.wait()
        for reader in self.outputs:
            os.close(reader)
        self.outputs = []


class Named:
    """Named writes output in which a debugger's name takes the place of the address of its stub, which does not exist any more later."""

    def __init__(self, write, path, name):
        self.write, self.line = write or (lambda _: None), b""
        address, name = os.fsencode("unix:" + path), name.encode()
        self.names = [(b" --remote " + address, b""), (b"remote " + address, name), (address, name)]

    def __call__(self, data):
        lines, end, self.line = (self.line + data).rpartition(b"\n")
        self.put(lines + end)

    def put(self, data):
        for address, name in self.names:
            data = data.replace(address, name)
        if data:
            self.write(data)

    def end(self):
        self.put(self.line)
        self.line = b""


def attend(stub, listener, outputs, child):
    """attend serves a stub until a command has ended, and passes its outputs on.

    A process that the command started can keep the outputs open. Therefore the end of the command counts, not theirs.
    """
    outputs = dict(outputs)
    while outputs and not child.ended():
        ready, _, _ = select.select(list(outputs) + [stub.client or listener], [], [], 0.2)
        for source in ready:
            if source in outputs:
                data = os.read(source, 1 << 16)
                if data:
                    outputs[source](data)
                else:
                    del outputs[source]
            elif source is listener:
                stub.accept(listener.accept()[0])
            else:
                try:
                    stub.receive()
                except (Lost, OSError):
                    stub.close()
    # What the command has written last is still in the pipes. One read returns all that a pipe holds.
    for source in select.select(list(outputs), [], [], 0)[0]:
        outputs[source](os.read(source, 1 << 20))
